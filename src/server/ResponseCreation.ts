import { Clock, Effect, Result, Schema } from "effect"
import { randomUUID } from "node:crypto"
import type { ResponseObject } from "../../schema/openai/Responses.ts"
import type { EventFraming } from "../dialect/EventFraming.ts"
import * as OpenAiResponses from "../dialect/OpenAiResponses.ts"
import { type PlacedItem, storedItems } from "../dialect/OpenAiResponsesInput.ts"
import { itemId, type ResponseHead } from "../dialect/OpenAiResponsesOutput.ts"
import { ResponseStream } from "../dialect/OpenAiResponsesStream.ts"
import type { Fields } from "../dialect/OpenAiResponsesTools.ts"
import type { WireObject } from "../dialect/WireRequest.ts"
import type { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import { samplingOf, ServedModel } from "../domain/ServedModel.ts"
import { RequestRecord, sessionTag } from "./RequestRecord.ts"
import type { ResponseStore, StoredResponse } from "./ResponseStore.ts"
import { randomSeed } from "./Seed.ts"

const readOutput = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ output: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) }))
)

/** Input and output of a response, in their order. */
export const conversationOf = ({ body, input }: StoredResponse): ReadonlyArray<Fields> => [...input, ...readOutput(body).output]

/** What one tenant has stored. */
export const storedBy = (store: ResponseStore["Service"], tenant: string): OpenAiResponses.StoredConversations => ({
  items: (id) => {
    const response = store.get(tenant, id)
    return response === undefined ? undefined : conversationOf(response)
  },
  item: (id) => {
    const response = store.owner(tenant, id)
    return response === undefined ? undefined : conversationOf(response).findLast((item) => item["id"] === id)
  }
})

const idOf = (item: Fields): ReadonlyArray<string> => typeof item["id"] === "string" ? [item["id"]] : []

/** A response as it is kept: `given` came before its output, and `body` is its JSON text. */
export const storedResponse = (given: ReadonlyArray<PlacedItem>, response: ResponseObject, body: string): StoredResponse => {
  const isOwn = ({ path }: PlacedItem) => path !== "previous_response_id"
  const earlier = given.filter((item) => !isOwn(item)).map(({ item }) => item)
  const own = storedItems(given.filter(isOwn), (prefix, index) => itemId(`${response.id}i`, prefix, index))
  return {
    id: response.id,
    body,
    input: [...earlier, ...own],
    itemIds: [...own.flatMap(idOf), ...response.output.map((item) => item.id)]
  }
}

/** What a body asks for; a `previous_response_id` that names nothing is told apart, since each transport has its own words for it. */
export const decode = (
  wire: WireObject,
  stored: OpenAiResponses.StoredConversations
): Effect.Effect<
  Result.Result<OpenAiResponses.DecodedResponses, OpenAiResponses.PreviousNotFound>,
  InvalidRequest | UnsupportedFeature,
  ServedModel
> =>
  Effect.gen(function*() {
    const record = yield* RequestRecord
    const session = wire.fields["prompt_cache_key"]
    if (typeof session === "string" && session !== "") record.session = sessionTag(session)
    const decoded = OpenAiResponses.decode(wire, {
      tenant: record.tenant,
      session: record.session,
      randomSeed: randomSeed(),
      ...samplingOf(yield* ServedModel),
      stored
    })
    if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
    return decoded.failure._tag === "PreviousNotFound" ? Result.fail(decoded.failure) : yield* decoded.failure
  })

/** A new response to a decoded request. The result makes its events, for one run of them; `onEnd` takes the response that ended by itself. */
export const responses = ({ echo, reasoning, tools }: OpenAiResponses.DecodedResponses) =>
  Effect.gen(function*() {
    const model = yield* ServedModel
    const head: ResponseHead = {
      id: `resp_${randomUUID().replaceAll("-", "")}`,
      created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
      model: model.id,
      echo
    }
    return (framing: EventFraming, onEnd: (response: ResponseObject) => void) =>
      new ResponseStream({ framing, head, tools, reasoning, onEnd })
  })
