import { Cause, Clock, Context, Effect, Exit } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Auth, localTenant } from "../auth/Auth.ts"
import { RequestRefused } from "../domain/Errors.ts"
import { ServedModel } from "../domain/ServedModel.ts"
import { Engine } from "../engine/Engine.ts"
import { Settings } from "../Settings.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { serverSpan } from "../telemetry/Spans.ts"
import { corsHeaders, preflightHeaders } from "./Cors.ts"
import { errorDialect, errorResponse } from "./ErrorResponse.ts"
import { hostCheck } from "./HostCheck.ts"
import { requestId, RequestRecord, type RequestRecordValue, sessionOf } from "./RequestRecord.ts"
import { routeOf } from "./Routes.ts"

/** Whether the server is closing: it finishes what runs and takes nothing new. */
export class Draining extends Context.Service<Draining, { readonly now: () => boolean }>()("mashbox/server/Draining") {}

/** Routes that need no key. */
const openRoutes: ReadonlySet<string> = new Set(["/", "/health", "/v1/health"])

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

/** What the router's own failures mean to a client. */
const unrouted = (request: HttpServerRequest.HttpServerRequest): RequestRefused => {
  const route = routeOf(request.url)
  return route === undefined
    ? new RequestRefused({ reason: "UnknownRoute", message: "This server has no such route; GET /openapi.json lists those it has." })
    : new RequestRefused({
      reason: "WrongMethod",
      message: `This route does not take ${request.method}.`,
      allow: route.methods
    })
}

const refusalOf = (cause: Cause.Cause<unknown>, request: HttpServerRequest.HttpServerRequest): RequestRefused | undefined => {
  for (const reason of cause.reasons) {
    if (reason._tag === "Interrupt") continue
    const error = reason._tag === "Fail" ? reason.error : reason.defect
    if (HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound") return unrouted(request)
    return new RequestRefused({ reason: "Defect", message: "Server error: the request failed inside the server." })
  }
  return undefined
}

/**
 * Before every route: a request id and one log line, the host and origin check, HEAD, draining and the key; after it, what went wrong in
 * the words of the path's dialect.
 */
export const layer = HttpRouter.middleware(
  Effect.gen(function*() {
    const auth = yield* Auth
    const engine = yield* Engine
    const draining = yield* Draining
    const model = yield* ServedModel
    const settings = yield* Settings
    const check = hostCheck(settings.host, settings.corsOrigins)
    const corsOrigins: ReadonlySet<string> = new Set(settings.corsOrigins)

    const guarded = <E, R>(
      request: HttpServerRequest.HttpServerRequest,
      record: RequestRecordValue,
      app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
    ) =>
      Effect.gen(function*() {
        const { headers } = request
        const foreign = check({ host: headers["host"], origin: headers["origin"] })
        if (foreign !== undefined) return yield* foreign
        const { origin } = headers
        if (request.method === "OPTIONS" && origin !== undefined && corsOrigins.has(origin)) {
          const methods = routeOf(request.url)?.methods
          if (methods !== undefined && headers["access-control-request-method"] !== undefined) {
            return HttpServerResponse.empty({
              headers: preflightHeaders(origin, methods, {
                headers: headers["access-control-request-headers"],
                privateNetwork: headers["access-control-request-private-network"]
              })
            })
          }
        }
        if (request.method === "HEAD") {
          const ready = (yield* engine.status)._tag === "Ready"
          return HttpServerResponse.empty(ready ? { status: 200 } : { status: 503, headers: { "retry-after": "2" } })
        }
        if (!openRoutes.has(record.route)) {
          record.tenant = yield* auth.authenticate({ authorization: headers["authorization"], apiKey: headers["x-api-key"] })
        }
        if (draining.now()) return yield* new RequestRefused({ reason: "Draining", message: "The server is shutting down." })
        return yield* app
      })

    return (app) =>
      Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
        const clock = yield* Clock.Clock
        const startedAt = clock.monotonicTimeNanosUnsafe()
        const session = sessionOf(request.headers)
        const record: RequestRecordValue = {
          id: requestId(request.headers["x-request-id"]),
          method: request.method,
          route: routeOf(request.url)?.pattern ?? "unknown",
          tenant: localTenant,
          status: 0,
          outcome: "ok",
          ...(session === undefined ? {} : { session })
        }
        const span = yield* serverSpan(`${request.method} ${record.route}`, request.headers)
        yield* Effect.addFinalizer((exit) =>
          Effect.suspend(() => logRecord(record, Number(clock.monotonicTimeNanosUnsafe() - startedAt) / 1e6, exit)).pipe(
            Effect.andThen(Effect.suspend(() => span.end(spanAttributes(record, model.id), spanFailure(record))))
          )
        )
        const response = yield* span.around(guarded(request, record, app)).pipe(
          Effect.provideService(RequestRecord, record),
          Effect.catchCause((cause) => {
            const failure = cause.reasons.find((reason) => reason._tag === "Fail")?.error
            const refused = failure instanceof RequestRefused ? failure : refusalOf(cause, request)
            if (refused === undefined) return Effect.failCause(cause)
            record.outcome = refused.reason === "Defect" ? "failed" : "refused"
            record.error = refused.reason
            const response = errorResponse(errorDialect(request.url), refused, record.id)
            return refused.reason === "Defect"
              ? Effect.as(Effect.logError("defect", { request: record.id }, cause), response)
              : Effect.succeed(response)
          })
        )
        record.status = response.status
        const { origin } = request.headers
        return HttpServerResponse.setHeaders(response, {
          "x-request-id": record.id,
          ...(origin !== undefined && corsOrigins.has(origin) && response.headers["access-control-allow-origin"] === undefined
            ? corsHeaders(origin)
            : {})
        })
      })
  }),
  { global: true }
)
