import { type Context, Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import type { Finish } from "../domain/OutputEvent.ts"
import { vllmFamilies } from "./VllmNames.ts"

const counter = (name: string, description: string) => Metric.counter(`mashbox:${name}`, { description, incremental: true })
const gauge = (name: string, description: string) => Metric.gauge(`mashbox:${name}`, { description })
const seconds = (name: string, description: string, boundaries: ReadonlyArray<number>) =>
  Metric.histogram(`mashbox:${name}`, { description, boundaries })

const running = gauge("num_requests_running", "Requests being answered now.")
const waiting = gauge("num_requests_waiting", "Requests waiting for a slot.")
const cacheUse = gauge(
  "kv_cache_usage_perc",
  "Share of the KV blocks that are in use, 0 to 1; of the slots where the engine does not report blocks."
)
const cacheLayout = gauge("cache_config_info", "The cache layout: one slot holds one whole context.")
const finished = counter("request_success_total", "Requests answered, by finish reason.")
const finishedBy = {
  stop: Metric.withAttributes(finished, { finished_reason: "stop" }),
  length: Metric.withAttributes(finished, { finished_reason: "length" }),
  tool_calls: Metric.withAttributes(finished, { finished_reason: "tool_calls" })
}
const promptTokens = counter("prompt_tokens_total", "Prompt tokens of answered requests.")
const generationTokens = counter("generation_tokens_total", "Tokens generated.")
const prefixQueries = counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.")
const prefixHits = counter("prefix_cache_hits_total", "Prompt tokens served from the prefix cache.")
const preemptions = counter("num_preemptions_total", "Requests preempted (never).")
const workerRestarts = counter("worker_restarts_total", "Times the engine's worker was started again after a fault.")
const compiles = counter("compiles_after_ready_total", "Programs compiled since the server was ready (never: the engine compiles nothing).")
const failed = counter("request_failure_total", "Requests that ended in an error after they were accepted.")

const longBoundaries = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
const timeToFirstToken = seconds("time_to_first_token_seconds", "From a request's arrival to its first token.", longBoundaries)
const queueTime = seconds("request_queue_time_seconds", "From a request's arrival to its slot.", longBoundaries)
const endToEnd = seconds("e2e_request_latency_seconds", "From a request's arrival to its last token.", longBoundaries)
const prefillTime = seconds("request_prefill_time_seconds", "From a request's slot to its first token.", longBoundaries)
const decodeTime = seconds("request_decode_time_seconds", "From a request's first token to its last.", longBoundaries)
const inferenceTime = seconds("request_inference_time_seconds", "From a request's slot to its last token.", longBoundaries)
const tokenBoundaries = [1, 10, 100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000]
const tokens = (name: string, description: string) => Metric.histogram(`mashbox:${name}`, { description, boundaries: tokenBoundaries })
const requestPromptTokens = tokens("request_prompt_tokens", "Prompt tokens, by request.")
const requestGenerationTokens = tokens("request_generation_tokens", "Tokens generated, by request.")
const responses = counter("http_responses_total", "Answers by route pattern and status.")
const timePerOutputToken = seconds("time_per_output_token_seconds", "Time between two tokens, one mean per request.", [
  0.001,
  0.0025,
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5
])

const always = Effect.all(
  [
    Metric.update(finishedBy.stop, 0),
    Metric.update(finishedBy.length, 0),
    Metric.update(finishedBy.tool_calls, 0),
    ...[promptTokens, generationTokens, prefixQueries, prefixHits, preemptions, compiles, failed].map((metric) => Metric.update(metric, 0)),
    // Reading a histogram registers it, so that dashboards find it before there is a request.
    ...[
      queueTime,
      timeToFirstToken,
      prefillTime,
      decodeTime,
      inferenceTime,
      endToEnd,
      timePerOutputToken,
      requestPromptTokens,
      requestGenerationTokens
    ].map((histogram) => Metric.value(histogram))
  ],
  { discard: true }
)

/** Counts one answered request; the times are milliseconds. */
export const requestFinished = (finish: Finish, elapsedMs: number): Effect.Effect<void> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const { cachedTokens, completionTokens, generationMs, promptMs, promptTokens: prompt, queueMs } = finish.usage
    finishedBy[finish.reason].updateUnsafe(1, context)
    promptTokens.updateUnsafe(prompt, context)
    generationTokens.updateUnsafe(completionTokens, context)
    prefixQueries.updateUnsafe(prompt, context)
    prefixHits.updateUnsafe(cachedTokens, context)
    queueTime.updateUnsafe(queueMs / 1000, context)
    timeToFirstToken.updateUnsafe((queueMs + promptMs) / 1000, context)
    prefillTime.updateUnsafe(promptMs / 1000, context)
    decodeTime.updateUnsafe(generationMs / 1000, context)
    inferenceTime.updateUnsafe((promptMs + generationMs) / 1000, context)
    endToEnd.updateUnsafe(elapsedMs / 1000, context)
    requestPromptTokens.updateUnsafe(prompt, context)
    requestGenerationTokens.updateUnsafe(completionTokens, context)
    if (completionTokens > 1) timePerOutputToken.updateUnsafe(generationMs / 1000 / (completionTokens - 1), context)
    return Effect.void
  })

/** Counts one request that was accepted and then failed. */
export const requestFailed: Effect.Effect<void> = Metric.update(failed, 1)

const answeredWith = new Map<string, Metric.Counter<number>>()

/** Counts one answer; `route` is a pattern of ours, never a client's text. */
export const responded = (route: string, status: number): Effect.Effect<void> => {
  const key = `${status} ${route}`
  const metric = answeredWith.get(key) ?? Metric.withAttributes(responses, { route, status: String(status) })
  answeredWith.set(key, metric)
  return Metric.update(metric, 1)
}

/** What is true at the moment of a scrape. */
export interface Present {
  readonly model: string
  readonly running: number
  readonly waiting: number
  readonly slots: number
  /** The share of the KV blocks in use, where the engine says. */
  readonly cacheUse: number | undefined
  readonly contextLength: number
  readonly workerRestarts: number
}

/** The Prometheus text of everything counted so far, under our names and under vLLM's. */
export const render = Effect.fnUntraced(function*(present: Present) {
  yield* always
  yield* Metric.update(running, present.running)
  yield* Metric.update(waiting, present.waiting)
  yield* Metric.update(cacheUse, present.cacheUse ?? (present.slots === 0 ? 0 : Math.min(1, present.running / present.slots)))
  yield* Metric.update(
    Metric.withAttributes(cacheLayout, { block_size: String(present.contextLength), num_blocks: String(present.slots) }),
    1
  )
  const restarts = yield* Metric.value(workerRestarts)
  yield* Metric.update(workerRestarts, Math.max(0, present.workerRestarts - restarts.count))
  const text = yield* PrometheusMetrics.format()
  return text + vllmFamilies(text, present.model)
})
