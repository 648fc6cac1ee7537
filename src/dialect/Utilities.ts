import { Result } from "effect"
import { DetokenizeRequest, TokenizeRequest } from "../../schema/mashbox/Utilities.ts"
import { InvalidRequest, type UnsupportedFeature } from "../domain/Errors.ts"
import type { Prompt } from "../domain/GenerationRequest.ts"
import * as OpenAiChat from "./OpenAiChat.ts"
import { decoder, type WireObject } from "./WireRequest.ts"

/** What is to be made into tokens, and how they are given. */
export interface DecodedTokenize {
  readonly model: string | undefined
  readonly prompt: Prompt
  readonly texts: boolean
  readonly pieces: boolean
}

const decodeTokenize = decoder(TokenizeRequest)
const decodeDetokenize = decoder(DetokenizeRequest)

/** Nothing is generated, so that the seed changes nothing. */
const context: OpenAiChat.RequestContext = { tenant: "", session: undefined, randomSeed: 0 }

/** The conversation of a chat completion's body. */
export const conversation = (wire: WireObject) =>
  Result.map(
    OpenAiChat.decode(wire, context),
    ({ ignored, request }) => ({ model: request.model, ignored, conversation: request.prompt.conversation })
  )

/** The body of `POST /tokenize`, in vLLM's or llama-server's words. */
export const tokenize = (wire: WireObject): Result.Result<DecodedTokenize, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    const body = yield* decodeTokenize(wire)
    const given = (["prompt", "content", "messages"] as const).filter((name) => body[name] !== undefined)
    if (given.length !== 1) {
      return yield* Result.fail(
        new InvalidRequest({ message: "prompt: Expected one of prompt, content and messages", field: given[1] ?? "prompt" })
      )
    }
    const common = { model: body.model, texts: body.return_token_strs ?? false, pieces: body.with_pieces ?? false }
    if (body.messages !== undefined) {
      const chat = yield* conversation(wire)
      return { ...common, prompt: { _tag: "Chat", conversation: chat.conversation } }
    }
    return {
      ...common,
      prompt: {
        _tag: "Text",
        text: (body.prompt ?? body.content ?? "").toWellFormed(),
        parseSpecial: body.parse_special ?? true,
        addBos: body.add_special_tokens ?? body.add_special ?? body.prompt !== undefined
      }
    }
  })

/** The body of `POST /detokenize`. */
export const detokenize = (
  wire: WireObject
): Result.Result<{ readonly model: string | undefined; readonly tokens: Int32Array }, InvalidRequest> => {
  const { tokens } = wire.fields
  const packed = tokens instanceof Int32Array ? tokens : undefined
  return Result.map(
    decodeDetokenize(packed === undefined ? wire : { ...wire, fields: { ...wire.fields, tokens: [] } }),
    (body) => ({ model: body.model, tokens: packed ?? Int32Array.from(body.tokens) })
  )
}
