import { Cause, Clock, Effect, Exit, type Scope } from "effect"
import { type Headers, HttpServerError } from "effect/http"
import * as Metrics from "../telemetry/Metrics.ts"
import { serverSpan } from "../telemetry/Spans.ts"
import { RequestRecord, type RequestRecordValue } from "./RequestRecord.ts"

/** Every failure of a route is an answer, so what still fails is the sending of it: the client has left, or the server interrupts it. */
const unsent = (cause: Cause.Cause<unknown>): RequestRecordValue["outcome"] => {
  const interrupts = cause.reasons.filter(Cause.isInterruptReason)
  const byClient = interrupts.length === 0 || interrupts.some((reason) => reason.annotations.has(HttpServerError.ClientAbort.key))
  return byClient ? "client_left" : "server_closed"
}

const logRecord = (record: RequestRecordValue, elapsedMs: number, exit: Exit.Exit<unknown, unknown>) => {
  if (record.outcome === "ok" && Exit.isFailure(exit)) record.outcome = unsent(exit.cause)
  const { id, ...fields } = record
  const logged = Effect.logInfo("request", { request: id, ...fields, ms: Math.round(elapsedMs * 10) / 10 })
  return record.status === 0 ? logged : Effect.andThen(logged, Metrics.responded(record.route, record.status))
}

/** Attributes of HTTP's and of generative AI's semantic conventions; of the client's own words none. */
const spanAttributes = (record: RequestRecordValue, model: string) => ({
  "http.request.method": record.method,
  "http.route": record.route,
  "http.response.status_code": record.status,
  "mashbox.request.id": record.id,
  "mashbox.outcome": record.outcome,
  "error.type": record.error,
  "gen_ai.conversation.id": record.session,
  ...(record.promptTokens === undefined ? {} : {
    "gen_ai.operation.name": record.route === "/v1/completions" ? "text_completion" : "chat",
    "gen_ai.provider.name": "mashbox",
    "gen_ai.request.model": model,
    "gen_ai.response.model": model,
    "gen_ai.usage.input_tokens": record.promptTokens,
    "gen_ai.usage.cache_read.input_tokens": record.cachedTokens,
    "gen_ai.usage.output_tokens": record.completionTokens,
    "gen_ai.response.finish_reasons": record.finish === undefined ? undefined : [record.finish]
  })
})

/** A client's mistake is no failure of the server's span (OpenTelemetry's HTTP conventions). */
const spanFailure = (record: RequestRecordValue): string | undefined =>
  record.outcome === "failed" || record.status >= 500 ? record.error ?? record.outcome : undefined

/**
 * Opens the log line and the span of a request, which end with the scope. The result makes an effect a part of both. `headers` are the
 * request's: they may name the caller's trace. `model`: the served model's id.
 */
export const open = (
  record: RequestRecordValue,
  headers: Headers.Headers,
  model: string
): Effect.Effect<<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const startedAt = clock.monotonicTimeNanosUnsafe()
    const span = yield* serverSpan(`${record.method} ${record.route}`, headers)
    yield* Effect.addFinalizer((exit) =>
      Effect.suspend(() => logRecord(record, Number(clock.monotonicTimeNanosUnsafe() - startedAt) / 1e6, exit)).pipe(
        Effect.andThen(Effect.suspend(() => span.end(spanAttributes(record, model), spanFailure(record))))
      )
    )
    return (effect) => Effect.provideService(span.around(effect), RequestRecord, record)
  })
