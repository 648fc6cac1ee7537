import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { randomUUID } from "node:crypto"
import type { TokenCount } from "../../schema/anthropic/Message.ts"
import * as AnthropicMessages from "../dialect/AnthropicMessages.ts"
import { type AnswerHead, message, MessageStream } from "../dialect/AnthropicMessagesAnswer.ts"
import { samplingOf, ServedModel } from "../domain/ServedModel.ts"
import { Generation } from "../generation/Generation.ts"
import { wireObject } from "./Body.ts"
import { answer } from "./Generating.ts"
import { RequestRecord, sessionTag } from "./RequestRecord.ts"
import { randomSeed } from "./Seed.ts"

/** Anthropic's SDKs read the request's id from this header. */
const withRequestId = (response: HttpServerResponse.HttpServerResponse, id: string) =>
  HttpServerResponse.setHeader(response, "request-id", id)

/** The body, with the session that it names noted. */
const readBody = Effect.gen(function*() {
  const record = yield* RequestRecord
  const wire = yield* wireObject
  const session = AnthropicMessages.sessionName(wire, record.session !== undefined)
  if (session !== undefined) record.session = sessionTag(session)
  return wire
})

/** `POST /v1/messages`. */
export const messages = Effect.gen(function*() {
  const record = yield* RequestRecord
  const model = yield* ServedModel
  const wire = yield* readBody
  const decoded = yield* Effect.fromResult(
    AnthropicMessages.decode(wire, {
      tenant: record.tenant,
      session: record.session,
      randomSeed: randomSeed(),
      ...samplingOf(model),
      served: model
    })
  )
  const head: AnswerHead = {
    id: `msg_${randomUUID().replaceAll("-", "")}`,
    model: decoded.model,
    omitThinking: decoded.omitThinking,
    returnProgress: decoded.returnProgress
  }
  const response = yield* answer({
    request: decoded.request,
    stream: decoded.stream,
    ignored: decoded.ignored,
    encoder: (promptTokens) => new MessageStream(head, promptTokens),
    whole: (output, finish) => message(head, output, finish)
  })
  return withRequestId(response, record.id)
})

/** `POST /v1/messages/count_tokens`: answered from the tokenizer alone, also while the model loads. */
export const countTokens = Effect.gen(function*() {
  const record = yield* RequestRecord
  const model = yield* ServedModel
  const generation = yield* Generation
  const wire = yield* readBody
  const { conversation, ignored } = yield* Effect.fromResult(AnthropicMessages.decodeCounted(wire, model))
  const count: TokenCount = { input_tokens: yield* generation.countTokens({ _tag: "Chat", conversation }) }
  record.promptTokens = count.input_tokens
  const response = HttpServerResponse.jsonUnsafe(
    count,
    ignored.length === 0 ? {} : { headers: { "x-mashbox-ignored": ignored.join(", ") } }
  )
  return withRequestId(response, record.id)
})

/** `GET /api/hello`. */
export const hello = Effect.succeed({ message: "hello" })
