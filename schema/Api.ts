import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AnthropicError } from "./anthropic/Error.ts"
import { Hello, Message, MessageStreamEvent, TokenCount } from "./anthropic/Message.ts"
import { CountTokensRequest, MessagesRequest } from "./anthropic/MessagesRequest.ts"
import { Health } from "./mashbox/Health.ts"
import {
  AppliedTemplate,
  DetokenizeRequest,
  DetokenizeResponse,
  Props,
  RenderedChat,
  TokenizeRequest,
  TokenizeResponse
} from "./mashbox/Utilities.ts"
import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from "./openai/Chat.ts"
import { ErrorBody } from "./openai/Common.ts"
import { Completion, CompletionRequest } from "./openai/Completions.ts"
import { Model, ModelList } from "./openai/Models.ts"
import {
  InputItemList,
  InputTokens,
  InputTokensRequest,
  ResponseDeleted,
  ResponseObject,
  ResponsesRequest,
  ResponseStreamEvent
} from "./openai/Responses.ts"
import { ResponseCreate, SocketEvent } from "./openai/ResponsesSocket.ts"

/** Summary, description and what each status of a route means. Only health is open to everybody. */
const describe = (summary: string, description: string, statuses: Readonly<Record<number, string>> = { 200: "OK" }) =>
  OpenApi.annotations({
    summary,
    description,
    transform: ({ security, ...operation }) => ({
      ...operation,
      ...(statuses === healthStatuses ? { security } : {}),
      responses: Object.fromEntries(
        // What an endpoint without a success gets; no route answers it.
        Object.entries<object>(operation["responses"]).filter(([status]) => status !== "204").map((
          [status, response]
        ) => [status, { ...response, description: statuses[Number(status)] ?? "OK" }])
      )
    })
  })

const healthBodies = { success: Health, error: Health.pipe(HttpApiSchema.status(503)) }

const healthStatuses = { 200: "The model is loaded and the server takes requests.", 503: "The model is still loading." }

/** What each status of a generating route means; the bodies are of OpenAI's error shape. */
const failures = {
  400: "Bad request: param names the field. A prompt that does not fit has code context_length_exceeded; nothing is ever truncated.",
  401: "A key is needed, or it is not one of this server's.",
  403: "From a web page of another origin, or for a host name that this server does not answer to.",
  404: "A model id other than the one this server serves (GET /v1/models), code model_not_found. Leaving model out is accepted.",
  413: "The body is larger than the server takes.",
  415: "The body is not application/json.",
  429:
    "Too many requests are waiting for a slot: 32 of yours (per tenant: keys the key file names with one tenant share it, a key without a name is its own tenant; without keys, 32 in all), or the server's queue is full (256 waiting in all). Retry after the Retry-After header's seconds.",
  500:
    "The request failed on the device: its one retry failed too, or it failed after its stream had sent output. A request whose client has received nothing is sent again (once, from the start): not streamed, until its response is written; streamed, until its first output is sent. A stream that has sent output is never retried by the server, since a second run could repeat what the client already has; it ends with the route's error event instead, carrying the response id as request_id.",
  503: "The model is still loading. Retry after the Retry-After header's seconds."
} as const

const failure = (status: number) => ErrorBody.pipe(HttpApiSchema.status(status))

class OpenAiGroup extends HttpApiGroup.make("openai", { topLevel: true }).add(
  HttpApiEndpoint.get("listModels", "/v1/models", { success: ModelList }).annotateMerge(
    describe("List models", "The one model this server runs.")
  ),
  HttpApiEndpoint.get("getModel", "/v1/models/:model", {
    params: { model: Schema.String },
    success: Model,
    error: failure(404)
  }).annotateMerge(
    describe("Get a model", "The model, when {model} is its id (URL-encoded); 404 otherwise.", { 404: "Another model id." })
  ),
  HttpApiEndpoint.post("createChatCompletion", "/v1/chat/completions", {
    payload: ChatCompletionRequest,
    success: [ChatCompletion, ChatCompletionChunk.pipe(HttpApiSchema.asJson({ contentType: "text/event-stream" }))],
    error: [
      failure(400),
      failure(401),
      failure(403),
      failure(404),
      failure(413),
      failure(415),
      failure(429),
      failure(500),
      failure(503)
    ]
  }).annotateMerge(describe(
    "Chat completion",
    "OpenAI Chat Completions with thinking and streaming. Fields that change nothing are listed in the x-mashbox-ignored response header.",
    failures
  )),
  HttpApiEndpoint.post("createCompletion", "/v1/completions", {
    payload: CompletionRequest,
    success: [Completion, Completion.pipe(HttpApiSchema.asJson({ contentType: "text/event-stream" }))],
    error: [
      failure(400),
      failure(401),
      failure(403),
      failure(404),
      failure(413),
      failure(415),
      failure(429),
      failure(500),
      failure(503)
    ]
  }).annotateMerge(describe("Text completion", "Continue plain prompts, no chat template.", failures))
).annotateMerge(OpenApi.annotations({ description: "OpenAI-compatible routes." })) {}

const utilityErrors = [failure(400), failure(401), failure(403), failure(404), failure(413), failure(415)] as const

class UtilityGroup extends HttpApiGroup.make("utility", { topLevel: true }).add(
  HttpApiEndpoint.post("tokenize", "/tokenize", {
    payload: TokenizeRequest,
    success: TokenizeResponse,
    error: utilityErrors
  }).annotateMerge(describe(
    "Tokens of a text or a conversation",
    "In the words of vLLM and of llama-server. Answered without the engine, also while the model loads.",
    failures
  )),
  HttpApiEndpoint.post("detokenize", "/detokenize", {
    payload: DetokenizeRequest,
    success: DetokenizeResponse,
    error: utilityErrors
  }).annotateMerge(
    describe("Text of tokens", "In the words of vLLM and of llama-server. Control tokens stand for their own text.", failures)
  ),
  HttpApiEndpoint.post("applyTemplate", "/apply-template", {
    payload: ChatCompletionRequest,
    success: AppliedTemplate,
    error: utilityErrors
  }).annotateMerge(
    describe("Prompt of a conversation", "What the chat template makes of a chat completion's body (llama-server).", failures)
  ),
  HttpApiEndpoint.post("renderChat", "/v1/chat/completions/render", {
    payload: ChatCompletionRequest,
    success: RenderedChat,
    error: utilityErrors
  }).annotateMerge(
    describe("Prompt of a conversation, with tokens", "What a chat completion with this body would give to the engine.", failures)
  ),
  HttpApiEndpoint.get("props", "/props", { success: Props, error: [failure(401), failure(403)] }).annotateMerge(
    describe("Properties", "What this server runs, in llama-server's words as far as they are true here.", failures)
  )
).annotateMerge(OpenApi.annotations({ description: "Tokens, prompts and properties, as vLLM and llama-server give them." })) {}

const responseId = { response_id: Schema.String }

const storedFailures = { 200: "OK", 400: failures[400], 401: failures[401], 403: failures[403], 404: "No response of this id is stored." }

const storedErrors = [failure(400), failure(401), failure(403), failure(404)] as const

class ResponsesGroup extends HttpApiGroup.make("responses", { topLevel: true }).add(
  HttpApiEndpoint.post("createResponse", "/v1/responses", {
    payload: ResponsesRequest,
    success: [ResponseObject, ResponseStreamEvent.pipe(HttpApiSchema.asJson({ contentType: "text/event-stream" }))],
    error: [
      failure(400),
      failure(401),
      failure(403),
      failure(404),
      failure(413),
      failure(415),
      failure(429),
      failure(500),
      failure(503)
    ]
  }).annotateMerge(describe(
    "Responses (OpenAI)",
    "OpenAI Responses with function, custom and namespace tools, reasoning and streaming, for Codex. A response is kept in memory (in a file with --responses-db), as one of the newest of its tenant, unless store is false.",
    { ...failures, 404: `${failures[404]} Or a previous_response_id that is not stored, code previous_response_not_found.` }
  )),
  HttpApiEndpoint.get("responsesSocket", "/v1/responses", {
    success: SocketEvent.pipe(HttpApiSchema.status(101)),
    error: [failure(400), failure(401), failure(403), failure(405), failure(426), failure(503)]
  }).annotateMerge(describe(
    "Responses over WebSocket",
    "With --websocket, an upgrade to a WebSocket (Upgrade: websocket, version 13). Each message of the client is a ResponseCreate: a Responses request with type response.create. Each message of the server is a ResponsesSocketEvent: the events of the response as POST streams them, or an error, after which the connection goes on. Requests of one stream_id are answered one after the other, and those of different ones at the same time, at most 16; up to 64 may wait or run, and 32 names may be used. A previous_response_id may also be the newest response of a stream_id of this connection where that was not stored (store: false). A binary message ends the connection with code 1003, one that is too large with 1009, an hour or the end of the server with 1001.",
    {
      101: "Upgraded. The body stands for each of the server's messages.",
      400: "The upgrade is not one of the WebSocket protocol.",
      401: failures[401],
      403: failures[403],
      405: "Responses are not listed: GET without an upgrade.",
      426: "Off (without --websocket): use POST /v1/responses with stream. Or an upgrade to something else than WebSocket version 13.",
      503: "The server is shutting down."
    }
  )),
  HttpApiEndpoint.post("countInputTokens", "/v1/responses/input_tokens", {
    payload: InputTokensRequest,
    success: InputTokens,
    error: [failure(400), failure(401), failure(403), failure(404), failure(413), failure(415)]
  }).annotateMerge(describe(
    "Count input tokens",
    "Prompt tokens that a Responses request would use, after the chat template. Answered without the engine, also while the model loads.",
    { ...failures, 404: "A previous_response_id that is not stored." }
  )),
  HttpApiEndpoint.post("compactResponse", "/v1/responses/compact", { error: failure(400) }).annotateMerge(describe(
    "Compact a conversation",
    "Not supported: always 400, code unsupported_parameter.",
    { 400: "This server does not compact conversations; ask the model for a summary instead." }
  )),
  HttpApiEndpoint.get("getResponse", "/v1/responses/:response_id", {
    params: responseId,
    success: ResponseObject,
    error: storedErrors
  }).annotateMerge(describe("Get a stored response", "A response of the same tenant, as it was when it ended.", storedFailures)),
  HttpApiEndpoint.delete("deleteResponse", "/v1/responses/:response_id", {
    params: responseId,
    success: ResponseDeleted,
    error: storedErrors
  }).annotateMerge(describe("Delete a stored response", "Forgets the response.", storedFailures)),
  HttpApiEndpoint.get("listInputItems", "/v1/responses/:response_id/input_items", {
    params: responseId,
    success: InputItemList,
    error: storedErrors
  }).annotateMerge(describe(
    "List a response's input items",
    "Every item that came before the output, those of earlier responses included. Query: limit (1 to 100, default 20), order (asc or desc, the default), after (an item's id).",
    storedFailures
  )),
  HttpApiEndpoint.post("cancelResponse", "/v1/responses/:response_id/cancel", { params: responseId, error: storedErrors }).annotateMerge(
    describe("Cancel a response", "Only responses in the background can be cancelled, and this server has none: 400.", {
      ...storedFailures,
      400: "The response did not run in the background, and has ended."
    })
  )
).annotateMerge(OpenApi.annotations({ description: "OpenAI Responses." })) {}

/** What each status of an Anthropic route means. */
const anthropicFailures = {
  400:
    "Bad request: the message begins with the field to blame. A prompt that does not fit is \"prompt is too long: N tokens > M maximum\"; nothing is ever truncated.",
  401: failures[401],
  403: failures[403],
  413: failures[413],
  415: failures[415],
  429:
    "Too many of your requests are waiting for a slot: 32 per tenant (keys the key file names with one tenant share it, a key without a name is its own tenant; without keys, 32 in all). Retry after the Retry-After header's seconds.",
  500: failures[500],
  529:
    "The model is still loading, or its worker is starting again after a fault, or the server's queue is full (256 waiting in all): overloaded_error. Retry after the Retry-After header's seconds (x-should-retry: true)."
} as const

const anthropicFailure = (status: keyof typeof anthropicFailures) => AnthropicError.pipe(HttpApiSchema.status(status))

class AnthropicGroup extends HttpApiGroup.make("anthropic", { topLevel: true }).add(
  HttpApiEndpoint.post("createMessage", "/v1/messages", {
    payload: MessagesRequest,
    success: [Message, MessageStreamEvent.pipe(HttpApiSchema.asJson({ contentType: "text/event-stream" }))],
    error: [
      anthropicFailure(400),
      anthropicFailure(401),
      anthropicFailure(403),
      anthropicFailure(413),
      anthropicFailure(415),
      anthropicFailure(429),
      anthropicFailure(500),
      anthropicFailure(529)
    ]
  }).annotateMerge(describe(
    "Messages (Anthropic)",
    "Anthropic Messages with client tools, thinking and streaming, for Claude Code. The ?beta=true query Claude Code adds is accepted.",
    anthropicFailures
  )),
  HttpApiEndpoint.post("countTokens", "/v1/messages/count_tokens", {
    payload: CountTokensRequest,
    success: TokenCount,
    error: [
      anthropicFailure(400),
      anthropicFailure(401),
      anthropicFailure(403),
      anthropicFailure(413),
      anthropicFailure(415),
      anthropicFailure(529)
    ]
  }).annotateMerge(describe(
    "Count tokens",
    "Prompt tokens a Messages request would use, after the chat template. Answered without the engine, also while the model loads.",
    { ...anthropicFailures, 529: "The server is shutting down: overloaded_error. Retry after the Retry-After header's seconds." }
  )),
  HttpApiEndpoint.get("hello", "/api/hello", { success: Hello }).annotateMerge(
    describe("Hello", "What Claude Code asks for at its start, with HEAD, to see that there is a server.")
  )
).annotateMerge(OpenApi.annotations({ description: "Anthropic-compatible routes." })) {}

class MashboxGroup extends HttpApiGroup.make("mashbox", { topLevel: true }).add(
  HttpApiEndpoint.get("health", "/v1/health", healthBodies).annotateMerge(describe(
    "Health",
    "200 when the model is loaded and the server takes requests, 503 while it loads. GET /health is the same. HEAD on this and every other path answers 200 or 503 without a body.",
    healthStatuses
  )),
  HttpApiEndpoint.get("healthShort", "/health", healthBodies).annotateMerge(
    describe("Health (short path)", "Same as GET /v1/health.", healthStatuses)
  ),
  HttpApiEndpoint.get("root", "/", healthBodies).annotateMerge(describe("Health", "Same as GET /v1/health.", healthStatuses)),
  HttpApiEndpoint.get("metrics", "/metrics", {
    success: Schema.String.pipe(HttpApiSchema.asText())
  }).annotateMerge(describe(
    "Metrics (Prometheus text)",
    "What the server does, in the Prometheus text format: requests running and waiting, KV cache use, the cache layout (one slot holds one whole context: block_size = the context length, num_blocks = the slots), requests answered by finish reason, prompt and generated tokens, prefix cache lookups and hits (tokens), preemptions (never), worker restarts, programs compiled after ready, and histograms of time to first token, queue time, end-to-end time and time per output token. Every figure has a name that starts with `mashbox:`; those that vLLM has too are also given under its `vllm:` name, for dashboards made for it. No label names a user, an API key or a session.",
    { 200: "Prometheus text exposition format." }
  )),
  HttpApiEndpoint.get("openapi", "/openapi.json", {
    success: Schema.Record(Schema.String, Schema.Unknown)
  }).annotateMerge(describe("This description", "The OpenAPI 3.1 description of this server.", { 200: "OpenAPI 3.1 document." }))
).annotateMerge(OpenApi.annotations({ description: "Health, metrics and this description." })) {}

/** The router answers HEAD on every path before any route, so it is no endpoint of the `HttpApi`. */
const healthHead = {
  tags: ["mashbox"],
  operationId: "healthHead",
  summary: "Ready check without a body",
  description: "200 when ready, 503 while loading, no body. The server answers HEAD the same way on every path.",
  parameters: [],
  security: [],
  responses: { 200: { description: "Ready." }, 503: { description: "Loading." } }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value)

/** Unknown fields are accepted everywhere, so no object of the document is closed. */
const withoutClosedObjects = (node: Record<string, unknown>): Record<string, unknown> => {
  const open = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(open)
      : isRecord(value)
      ? withoutClosedObjects(value)
      : value
  return Object.fromEntries(
    Object.entries(node).flatMap(([key, value]) => key === "additionalProperties" && value === false ? [] : [[key, open(value)]])
  )
}

/** Every route of the server; `schema/openapi.json` is generated from it. */
export class Api extends HttpApi.make("mashbox").add(OpenAiGroup, ResponsesGroup, AnthropicGroup, UtilityGroup, MashboxGroup).annotate(
  HttpApi.AdditionalSchemas,
  [ResponseCreate]
).annotateMerge(
  OpenApi.annotations({
    title: "mashbox server",
    version: "0.1.0",
    description:
      "The HTTP server `mashbox run` starts on 127.0.0.1. It speaks the OpenAI and Anthropic APIs, so their clients and coding agents work against it unchanged. On 127.0.0.1 no API key is checked and any key a client sends is ignored; with `--api-key-file` or `MASHBOX_API_KEY`, and always when `--host` is not loopback, every route but health needs a key (`Authorization: Bearer <key>` or `x-api-key: <key>`; 401 without). POST bodies must be `Content-Type: application/json` (415 otherwise), and a request from a web page of another origin, or naming the server by a host name it does not answer to, gets 403. Fields a route does not list are accepted and ignored, and named in the `x-mashbox-ignored` response header.",
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    servers: [{ url: "http://127.0.0.1:8000", description: "`mashbox run` (default `--port 8000`)" }],
    override: {
      security: [{}, { bearer: [] }, { apiKey: [] }]
    },
    transform: (spec) =>
      withoutClosedObjects({
        ...spec,
        paths: { ...spec["paths"], "/v1/health": { ...spec["paths"]["/v1/health"], head: healthHead } },
        components: {
          ...spec["components"],
          securitySchemes: {
            bearer: { type: "http", scheme: "bearer" },
            apiKey: { type: "apiKey", in: "header", name: "x-api-key" }
          }
        }
      })
  })
) {}

/** The OpenAPI 3.1 document of `Api`. */
export const openApi = () => OpenApi.fromApi(Api)
