import { Clock, Effect, type Scope } from "effect"
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

/** Generates every choice at once, and answers as one body or as a stream in which they interleave. */
export const answerChoices = (
  generating: GeneratingChoices
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  GenerationError | RequestRefused,
  Generation | HttpServerRequest.HttpServerRequest | Scope.Scope
> =>
  Effect.gen(function*() {
    const generation = yield* Generation
    const record = yield* RequestRecord
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const arrivedAt = now()
    record.stream = generating.stream
    const accepted = yield* Effect.forEach(generating.requests, generation.accept)
    const promptTokens = accepted.reduce((total, prompt) => total + prompt.promptTokens, 0)
    record.promptTokens = promptTokens
    const runs = accepted.flatMap((prompt) => prompt.choices)

    const run = (sink: (choice: number) => OutputSink): Effect.Effect<ReadonlyArray<Finish>, EngineError> =>
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

    const headers: Record<string, string> = generating.ignored.length === 0 ? {} : { "x-mashbox-ignored": generating.ignored.join(", ") }
    if (!generating.stream) {
      const sinks = runs.map(() => new CollectingSink())
      const finishes = yield* run((choice) => sinks[choice] ?? new CollectingSink())
      const choices = sinks.flatMap(({ output }, index) => {
        const finish = finishes[index]
        return finish === undefined ? [] : [{ output, finish }]
      })
      return HttpServerResponse.text(generating.whole(choices), { headers, contentType: "application/json" })
    }
    const body = yield* EventStream.respond({
      encoder: generating.encoder(promptTokens),
      run,
      socket: SocketWriter.make(yield* HttpServerRequest.HttpServerRequest),
      onSlowReader: () => {
        record.outcome = "slow_reader"
      }
    })
    return HttpServerResponse.raw(body, {
      contentType: "text/event-stream",
      headers: { ...headers, "cache-control": "no-cache", "x-accel-buffering": "no" }
    })
  })
