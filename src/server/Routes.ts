import { Effect, Layer } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Api } from "../../schema/Api.ts"
import type { GenerationError, RequestRefused } from "../domain/Errors.ts"
import { chatCompletions } from "./ChatRoute.ts"
import { completions } from "./CompletionsRoute.ts"
import { errorDialect, errorResponse } from "./ErrorResponse.ts"
import { getModel, health, listModels, metrics, openApiDocument } from "./InfoRoutes.ts"
import { countTokens, hello, messages } from "./MessagesRoute.ts"
import { RequestRecord } from "./RequestRecord.ts"
import {
  cancelResponse,
  compactResponse,
  countInputTokens,
  createResponse,
  deleteResponse,
  getResponse,
  listInputItems
} from "./ResponsesRoute.ts"
import { responsesSocket } from "./ResponsesSocket.ts"
import { applyTemplate, detokenize, props, renderChat, tokenize } from "./UtilityRoutes.ts"

/** Answers domain errors in the words of the path's dialect, and notes them in the request's record. */
const answered = <A, R>(effect: Effect.Effect<A, GenerationError | RequestRefused, R>) =>
  Effect.catch(
    effect,
    (error): Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest> =>
      Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
        const record = yield* RequestRecord
        record.error ??= error._tag
        if (record.outcome === "ok") record.outcome = "refused"
        return errorResponse(errorDialect(request.url), error, record.id)
      })
  )

const openAiHandlers = HttpApiBuilder.group(Api, "openai", (handlers) =>
  handlers
    .handle("listModels", () => listModels)
    .handleRaw("getModel", ({ params }) => answered(getModel(params.model)))
    .handleRaw("createChatCompletion", () => answered(chatCompletions))
    .handleRaw("createCompletion", () => answered(completions)))

const utilityHandlers = HttpApiBuilder.group(Api, "utility", (handlers) =>
  handlers
    .handleRaw("tokenize", () => answered(tokenize))
    .handleRaw("detokenize", () => answered(detokenize))
    .handleRaw("applyTemplate", () => answered(applyTemplate))
    .handleRaw("renderChat", () => answered(renderChat))
    .handleRaw("props", () => props))

const responsesHandlers = HttpApiBuilder.group(Api, "responses", (handlers) =>
  handlers
    .handleRaw("createResponse", () => answered(createResponse))
    .handleRaw("responsesSocket", () => answered(responsesSocket))
    .handleRaw("countInputTokens", () => answered(countInputTokens))
    .handleRaw("compactResponse", () => answered(compactResponse))
    .handleRaw("getResponse", ({ params }) => answered(getResponse(params.response_id)))
    .handleRaw("deleteResponse", ({ params }) => answered(deleteResponse(params.response_id)))
    .handleRaw("listInputItems", ({ params }) => answered(listInputItems(params.response_id)))
    .handleRaw("cancelResponse", ({ params }) => answered(cancelResponse(params.response_id))))

const anthropicHandlers = HttpApiBuilder.group(Api, "anthropic", (handlers) =>
  handlers
    .handleRaw("createMessage", () => answered(messages))
    .handleRaw("countTokens", () => answered(countTokens))
    .handle("hello", () => hello))

const mashboxHandlers = HttpApiBuilder.group(Api, "mashbox", (handlers) =>
  handlers
    .handleRaw("health", () => health)
    .handleRaw("healthShort", () => health)
    .handleRaw("root", () => health)
    .handleRaw("metrics", () => metrics)
    .handleRaw("openapi", () => openApiDocument))

/** Every route of `Api`, on the router. */
export const layer = HttpApiBuilder.layer(Api).pipe(
  Layer.provide([openAiHandlers, responsesHandlers, anthropicHandlers, utilityHandlers, mashboxHandlers])
)

interface RoutePattern {
  readonly pattern: string
  readonly match: RegExp
  readonly methods: ReadonlyArray<string>
}

const patterns: ReadonlyArray<RoutePattern> = (() => {
  const methods = new Map<string, Array<string>>()
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      methods.set(endpoint.path, [...methods.get(endpoint.path) ?? [], endpoint.method])
    }
  })
  return [...methods].map(([pattern, own]) => ({
    pattern,
    match: new RegExp(`^${pattern.replaceAll(".", "\\.").replace(/:\w+/g, "[^/]+")}/?$`),
    methods: [...own, "HEAD"]
  }))
})()

/** The route that a path belongs to and the methods that it takes. */
export const routeOf = (url: string): RoutePattern | undefined => {
  const path = url.split("?", 1)[0] ?? ""
  return patterns.find(({ match }) => match.test(path))
}
