import { Effect } from "effect"
import type { AppliedTemplate, DetokenizeResponse, Props, RenderedChat, TokenizeResponse } from "../../schema/mashbox/Utilities.ts"
import * as Utilities from "../dialect/Utilities.ts"
import { InvalidRequest, ModelNotFound } from "../domain/Errors.ts"
import { greedyDefaults } from "../domain/Sampling.ts"
import { isNamed, ServedModel } from "../domain/ServedModel.ts"
import { Engine } from "../engine/Engine.ts"
import { Generation } from "../generation/Generation.ts"
import { wireObject } from "./Body.ts"
import { answerJson, Listed } from "./LargeAnswer.ts"
import { packTokenLists } from "./TokenLists.ts"

const json = (value: Readonly<Record<string, unknown>>, ignored: ReadonlyArray<string> = []) =>
  answerJson(value, ignored.length === 0 ? {} : { "x-mashbox-ignored": ignored.join(", ") })

/** An answer whose lists are worded when they are sent. */
type Worded<A> = { readonly [K in keyof A]: A[K] | Listed }

const checkModel = Effect.fnUntraced(function*(name: string | undefined) {
  if (name !== undefined && !isNamed(yield* ServedModel, name)) return yield* new ModelNotFound({ model: name })
})

const contextLength = Effect.gen(function*() {
  const status = yield* (yield* Engine).status
  return status._tag === "Ready" ? status.model.contextLength : (yield* ServedModel).contextLength
})

/** A token's text, or its bytes where they are no whole characters, as llama-server gives them. */
const piece = (bytes: Uint8Array): string | ReadonlyArray<number> => {
  const text = Buffer.from(bytes).toString()
  return Buffer.from(text).equals(bytes) ? text : Array.from(bytes)
}

/** `POST /tokenize`. */
export const tokenize = Effect.gen(function*() {
  const { prompts } = yield* Generation
  const { model, pieces, prompt, texts } = yield* Effect.fromResult(Utilities.tokenize(yield* wireObject))
  yield* checkModel(model)
  const { tokens } = yield* prompts.encode(prompt)
  const listed = (item: (id: number) => unknown) => new Listed(tokens.length, (index) => item(tokens[index] ?? 0))
  const answer: Worded<TokenizeResponse> = {
    count: tokens.length,
    max_model_len: yield* contextLength,
    tokens: listed(pieces ? (id) => ({ id, piece: piece(prompts.bytesOf(id)) }) : (id) => id),
    token_strs: texts ? listed((id) => Buffer.from(prompts.bytesOf(id)).toString()) : null
  }
  return json(answer)
})

/** `POST /detokenize`. */
export const detokenize = Effect.gen(function*() {
  const { prompts } = yield* Generation
  const { model, tokens } = yield* Effect.fromResult(Utilities.detokenize(yield* packTokenLists(yield* wireObject, "tokens")))
  yield* checkModel(model)
  const outside = prompts.firstUnknown(tokens)
  if (outside >= 0) {
    const field = `tokens.${outside}`
    return yield* new InvalidRequest({ message: `${field}: the vocabulary has ${prompts.vocabularySize} tokens`, field })
  }
  const text = yield* prompts.textOf(tokens)
  const answer: DetokenizeResponse = { prompt: text, content: text }
  return json(answer)
})

const chat = Effect.gen(function*() {
  const decoded = yield* Effect.fromResult(Utilities.conversation(yield* wireObject))
  yield* checkModel(decoded.model)
  return decoded
})

/** `POST /apply-template`: the prompt alone, as llama-server gives it. */
export const applyTemplate = Effect.gen(function*() {
  const { prompts } = yield* Generation
  const { conversation, ignored } = yield* chat
  const answer: AppliedTemplate = { prompt: yield* prompts.render(conversation) }
  return json(answer, ignored)
})

/** `POST /v1/chat/completions/render`: the prompt and its tokens. */
export const renderChat = Effect.gen(function*() {
  const { prompts } = yield* Generation
  const model = yield* ServedModel
  const { conversation, ignored } = yield* chat
  const prompt = yield* prompts.render(conversation)
  const { tokens } = yield* prompts.encode({ _tag: "Chat", conversation })
  const answer: Worded<RenderedChat> = {
    prompt,
    prompt_token_ids: new Listed(tokens.length, (index) => tokens[index]),
    model: model.id
  }
  return json(answer, ignored)
})

/** `GET /props`. */
export const props = Effect.gen(function*() {
  const model = yield* ServedModel
  const { samplingDefaults = greedyDefaults } = model
  const { prompts } = yield* Generation
  const status = yield* (yield* Engine).status
  const answer: Props = {
    default_generation_settings: {
      n_ctx: yield* contextLength,
      params: {
        temperature: samplingDefaults.temperature,
        top_k: samplingDefaults.topK,
        top_p: samplingDefaults.topP,
        min_p: samplingDefaults.minP,
        repeat_penalty: samplingDefaults.repetitionPenalty,
        repeat_last_n: samplingDefaults.repetitionWindow,
        frequency_penalty: samplingDefaults.frequencyPenalty,
        presence_penalty: samplingDefaults.presencePenalty,
        n_predict: -1,
        stream: false
      }
    },
    total_slots: status._tag === "Ready" ? status.model.slots : model.slots,
    model_alias: model.id,
    model_path: model.weights,
    modalities: { vision: false, audio: false },
    chat_template: model.chatTemplate ?? "",
    bos_token: prompts.bos ?? "",
    eos_token: prompts.eos ?? "",
    build_info: "mashbox"
  }
  return json(answer)
})
