import { type Cause, Effect } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Auth, localTenant } from "../auth/Auth.ts"
import { RequestRefused } from "../domain/Errors.ts"
import { ServedModel } from "../domain/ServedModel.ts"
import { CurrentTenant } from "../domain/Tenant.ts"
import { Engine } from "../engine/Engine.ts"
import { Settings } from "../Settings.ts"
import { corsHeaders, preflightHeaders } from "./Cors.ts"
import { Draining } from "./Draining.ts"
import { errorDialect, errorResponse } from "./ErrorResponse.ts"
import { hostCheck } from "./HostCheck.ts"
import * as RequestLog from "./RequestLog.ts"
import { requestId, type RequestRecordValue, sessionOf } from "./RequestRecord.ts"
import { routeOf } from "./Routes.ts"

/** Routes that need no key. */
const openRoutes: ReadonlySet<string> = new Set(["/", "/health", "/v1/health"])

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
        return yield* Effect.provideService(app, CurrentTenant, record.tenant)
      })

    return (app) =>
      Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
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
        const around = yield* RequestLog.open(record, request.headers, model.id)
        const response = yield* around(guarded(request, record, app)).pipe(
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
          // Node has given the connection away, and it ends with the answer.
          ...(request.headers["upgrade"] === undefined ? {} : { connection: "close" }),
          ...(origin !== undefined && corsOrigins.has(origin) && response.headers["access-control-allow-origin"] === undefined
            ? corsHeaders(origin)
            : {})
        })
      })
  }),
  { global: true }
)
