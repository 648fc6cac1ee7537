import { Clock, Effect, type Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { StreamEncoder } from "../dialect/StreamEncoder.ts"
import type { EngineError, GenerationError, RequestRefused } from "../domain/Errors.ts"
import type { GenerationRequest } from "../domain/GenerationRequest.ts"
import { type Output, OutputCollector } from "../domain/Output.ts"
import type { Finish, OutputEvent } from "../domain/OutputEvent.ts"
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

/** Generates, and answers as one body or as a stream. */
export const answer = (
  generating: Generating
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
    const accepted = yield* generation.accept(generating.request)
    record.promptTokens = accepted.promptTokens

    const run = (sink: OutputSink): Effect.Effect<Finish, EngineError> =>
      accepted.run(sink).pipe(
        Effect.tap((finish) => {
          const { usage } = finish
          record.finish = finish.stopString === undefined ? finish.reason : "stop_string"
          record.cachedTokens = usage.cachedTokens
          record.completionTokens = usage.completionTokens
          record.queueMs = usage.queueMs
          record.firstOutputMs = usage.queueMs + usage.promptMs
          return Metrics.requestFinished(finish, now() - arrivedAt)
        }),
        Effect.tapError((error) => {
          record.outcome = "failed"
          record.error = `EngineError.${error.reason}`
          return Metrics.requestFailed
        })
      )

    const headers: Record<string, string> = generating.ignored.length === 0 ? {} : { "x-mashbox-ignored": generating.ignored.join(", ") }
    if (!generating.stream) {
      const sink = new CollectingSink()
      const finish = yield* run(sink)
      return HttpServerResponse.text(generating.whole(sink.output, finish), { headers, contentType: "application/json" })
    }
    const body = yield* EventStream.respond({
      encoder: generating.encoder(accepted.promptTokens),
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
