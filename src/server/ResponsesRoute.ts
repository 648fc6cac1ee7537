import { Effect, Result } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ErrorBody } from "../../schema/openai/Common.ts"
import { serverSentEvents } from "../dialect/EventFraming.ts"
import * as OpenAiResponses from "../dialect/OpenAiResponses.ts"
import { eventsOf } from "../dialect/OpenAiResponsesOutput.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import { Generation } from "../generation/Generation.ts"
import { wireObject } from "./Body.ts"
import { answer } from "./Generating.ts"
import { RequestRecord } from "./RequestRecord.ts"
import { decode, responses, storedBy, storedResponse } from "./ResponseCreation.ts"
import { ResponseStore } from "./ResponseStore.ts"

/** 404 in OpenAI's shape; nothing tells whether the id is another tenant's. */
const notFound = (message: string, param: string | null, code: string) =>
  Effect.gen(function*() {
    const record = yield* RequestRecord
    record.outcome = "refused"
    record.error = "ResponseNotFound"
    const body: ErrorBody = { error: { message, type: "invalid_request_error", param, code } }
    return HttpServerResponse.jsonUnsafe(body, { status: 404 })
  })

const previousNotFound = notFound(
  "previous_response_id: no such response is stored; send the whole conversation as input.",
  "previous_response_id",
  "previous_response_not_found"
)

const responseNotFound = notFound("No response of this id is stored.", "response_id", "response_not_found")

/** `POST /v1/responses`. */
export const createResponse = Effect.gen(function*() {
  const { tenant } = yield* RequestRecord
  const store = yield* ResponseStore
  const decoded = yield* decode(yield* wireObject, storedBy(store, tenant))
  if (Result.isFailure(decoded)) return yield* previousNotFound
  const { echo, ignored, items, request, stream } = decoded.success
  const events = yield* responses(decoded.success)
  let ended = ""
  const encoder = () =>
    events(serverSentEvents, (response) => {
      if (stream && !echo.store) return
      ended = JSON.stringify(response)
      if (echo.store) store.put(tenant, storedResponse(items, response, ended))
    })
  return yield* answer({
    request,
    stream,
    ignored,
    encoder,
    whole: (output, finish) => {
      const response = encoder()
      for (const event of eventsOf(output, finish)) response.event(event)
      return ended
    }
  })
})

/** `POST /v1/responses/input_tokens`: rendered and encoded as for an answer, without the engine. */
export const countInputTokens = Effect.gen(function*() {
  const { tenant } = yield* RequestRecord
  const store = yield* ResponseStore
  const wire = yield* wireObject
  const decoded = OpenAiResponses.decodeInput(wire, storedBy(store, tenant))
  if (Result.isFailure(decoded)) {
    return yield* (decoded.failure._tag === "PreviousNotFound" ? previousNotFound : Effect.fail(decoded.failure))
  }
  const { ignored, prompt } = decoded.success
  const tokens = yield* (yield* Generation).countTokens(prompt)
  return HttpServerResponse.jsonUnsafe(
    { object: "response.input_tokens", input_tokens: tokens },
    { headers: ignored.length === 0 ? {} : { "x-mashbox-ignored": ignored.join(", ") } }
  )
})

/** `POST /v1/responses/compact`. */
export const compactResponse = Effect.fail(
  new UnsupportedFeature({
    message:
      "compact: this server does not compact conversations. Ask the model for a summary with POST /v1/responses and start a new conversation with it.",
    field: "compact"
  })
)

const query = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => new URLSearchParams(url.split("?", 2)[1] ?? ""))

/** `GET /v1/responses/{id}`. */
export const getResponse = Effect.fnUntraced(function*(id: string) {
  const { tenant } = yield* RequestRecord
  if ((yield* query).get("stream") === "true") {
    return yield* new UnsupportedFeature({ message: "stream: a stored response is not streamed again", field: "stream" })
  }
  const response = (yield* ResponseStore).get(tenant, id)
  return response === undefined
    ? yield* responseNotFound
    : HttpServerResponse.text(response.body, { contentType: "application/json" })
})

/** `DELETE /v1/responses/{id}`. */
export const deleteResponse = Effect.fnUntraced(function*(id: string) {
  const { tenant } = yield* RequestRecord
  return (yield* ResponseStore).delete(tenant, id)
    ? HttpServerResponse.jsonUnsafe({ id, object: "response", deleted: true })
    : yield* responseNotFound
})

/** `POST /v1/responses/{id}/cancel`. */
export const cancelResponse = Effect.fnUntraced(function*(id: string) {
  const { tenant } = yield* RequestRecord
  if ((yield* ResponseStore).get(tenant, id) === undefined) return yield* responseNotFound
  return yield* new InvalidRequest({
    message: "Only a response that runs in the background can be cancelled; this one has ended.",
    field: "response_id"
  })
})

const badQuery = (field: string, expected: string) => new InvalidRequest({ message: `${field}: Expected ${expected}`, field })

/** `GET /v1/responses/{id}/input_items`, the newest first where `order` says nothing else. */
export const listInputItems = Effect.fnUntraced(function*(id: string) {
  const { tenant } = yield* RequestRecord
  const parameters = yield* query
  const limit = parameters.get("limit") ?? "20"
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > 100) {
    return yield* badQuery("limit", "an integer from 1 to 100")
  }
  const order = parameters.get("order") ?? "desc"
  if (order !== "asc" && order !== "desc") return yield* badQuery("order", "asc or desc")
  const response = (yield* ResponseStore).get(tenant, id)
  if (response === undefined) return yield* responseNotFound
  const stored = response.input
  const ordered = order === "asc" ? stored : stored.toReversed()
  const after = parameters.get("after")
  const start = after === null ? 0 : ordered.findIndex((item) => item["id"] === after) + 1
  if (after !== null && start === 0) return yield* badQuery("after", "the id of one of these items")
  const data = ordered.slice(start, start + Number(limit))
  return HttpServerResponse.jsonUnsafe({
    object: "list",
    data,
    first_id: data[0]?.["id"] ?? null,
    last_id: data.at(-1)?.["id"] ?? null,
    has_more: start + data.length < ordered.length
  })
})
