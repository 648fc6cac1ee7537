import { Clock, Effect, Fiber, type Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { StreamEncoder } from "../dialect/StreamEncoder.ts"
import type { EngineError, GenerationError, RequestRefused } from "../domain/Errors.ts"
import type { GenerationRequest } from "../domain/GenerationRequest.ts"
import { type Output, OutputCollector } from "../domain/Output.ts"
import type { Finish, OutputEvent } from "../domain/OutputEvent.ts"
import { combineChoices, combinePrompts } from "../domain/Usage.ts"
import { Generation, type OutputSink } from "../generation/Generation.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as EventStream from "./EventStream.ts"
import { RequestRecord } from "./RequestRecord.ts"
import { SocketWriter } from "./SocketWriter.ts"
import { SseOutput } from "./SseOutput.ts"
import type { StreamOutput } from "./StreamOutput.ts"

/** One request of any dialect, decoded, with the ways to word its answer. */
export interface Generating {
  readonly request: GenerationRequest
  readonly stream: boolean
  readonly ignored: ReadonlyArray<string>
  readonly encoder: (promptTokens: number) => StreamEncoder
  /** The answer as one JSON text. */
  readonly whole: (output: Output, finish: Finish) => string
}

/** One finished choice. */
export interface Choice {
  readonly output: Output
  readonly finish: Finish
}

/** A request for several choices: of one prompt, or of several prompts. They count from 0, prompt by prompt. */
export interface GeneratingChoices extends Omit<Generating, "request" | "whole"> {
  readonly requests: ReadonlyArray<GenerationRequest>
  readonly whole: (choices: ReadonlyArray<Choice>) => string
}

class CollectingSink implements OutputSink {
  readonly output = new OutputCollector()

  push(event: OutputEvent): void {
    if (event._tag !== "Finish") this.output.add(event)
  }

  reset(): boolean {
    this.output.clear()
    return true
  }
}

/** Generates one choice, and answers as one body or as a stream. */
export const answer = ({ request, whole, ...generating }: Generating) =>
  answerChoices({
    ...generating,
    requests: [request],
    whole: ([choice]) => choice === undefined ? "" : whole(choice.output, choice.finish)
  })

interface Begun {
  readonly promptTokens: number
  readonly choices: number
  /** Runs every choice, each into its own sink, and notes in the request's record how it went. */
  readonly run: (sink: (choice: number) => OutputSink) => Effect.Effect<ReadonlyArray<Finish>, EngineError>
}

const begin = (
  requests: ReadonlyArray<GenerationRequest>,
  stream: boolean
): Effect.Effect<Begun, GenerationError, Generation | Scope.Scope> =>
  Effect.gen(function*() {
    const generation = yield* Generation
    const record = yield* RequestRecord
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const arrivedAt = now()
    record.stream = stream
    const accepted = yield* Effect.forEach(requests, generation.accept)
    const promptTokens = accepted.reduce((total, prompt) => total + prompt.promptTokens, 0)
    record.promptTokens = promptTokens
    const runs = accepted.flatMap((prompt) => prompt.choices)

    const run: Begun["run"] = (sink) =>
      Effect.forEach(runs, (choice, index) => choice(sink(index)), { concurrency: "unbounded" }).pipe(
        Effect.tap((finishes) => {
          let at = 0
          const usage = combinePrompts(
            accepted.map((prompt) => combineChoices(finishes.slice(at, at += prompt.choices.length).map((finish) => finish.usage)))
          )
          const [first] = finishes
          if (first === undefined) return Effect.void
          record.finish = first.stopString === undefined ? first.reason : "stop_string"
          record.cachedTokens = usage.cachedTokens
          record.completionTokens = usage.completionTokens
          record.queueMs = usage.queueMs
          record.firstOutputMs = usage.queueMs + usage.promptMs
          return Metrics.requestFinished({ ...first, usage }, now() - arrivedAt)
        }),
        Effect.tapError((error) => {
          record.outcome = "failed"
          record.error = `EngineError.${error.reason}`
          return Metrics.requestFailed
        })
      )
    return { promptTokens, choices: runs.length, run }
  })

/** Generates every choice at once, and answers as one body or as a stream in which they interleave. */
export const answerChoices = (
  generating: GeneratingChoices
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  GenerationError | RequestRefused,
  Generation | HttpServerRequest.HttpServerRequest | Scope.Scope
> =>
  Effect.gen(function*() {
    const { choices, promptTokens, run } = yield* begin(generating.requests, generating.stream)
    const headers: Record<string, string> = generating.ignored.length === 0 ? {} : { "x-mashbox-ignored": generating.ignored.join(", ") }
    if (!generating.stream) {
      const sinks = Array.from({ length: choices }, () => new CollectingSink())
      const finishes = yield* run((choice) => sinks[choice] ?? new CollectingSink())
      const finished = sinks.flatMap(({ output }, index) => {
        const finish = finishes[index]
        return finish === undefined ? [] : [{ output, finish }]
      })
      return HttpServerResponse.text(generating.whole(finished), { headers, contentType: "application/json" })
    }
    const clock = yield* Clock.Clock
    const output = new SseOutput(
      SocketWriter.make(yield* HttpServerRequest.HttpServerRequest),
      () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    )
    yield* stream(generating.encoder(promptTokens), run, output)
    return HttpServerResponse.raw(output.body, {
      contentType: "text/event-stream",
      headers: { ...headers, "cache-control": "no-cache", "x-accel-buffering": "no" }
    })
  })

const stream = (encoder: StreamEncoder, run: Begun["run"], output: StreamOutput) =>
  Effect.flatMap(RequestRecord, (record) =>
    EventStream.begin({
      encoder,
      run,
      output,
      onSlowReader: () => {
        record.outcome = "slow_reader"
      }
    }))

/** Streams one choice into an output and waits for its end. An earlier failure is this effect's own. */
export const streamTo = (
  output: StreamOutput,
  { encoder, request }: Pick<Generating, "encoder" | "request">
): Effect.Effect<void, GenerationError | RequestRefused, Generation | Scope.Scope> =>
  Effect.gen(function*() {
    const { promptTokens, run } = yield* begin([request], true)
    yield* Fiber.await(yield* stream(encoder(promptTokens), run, output))
  })
