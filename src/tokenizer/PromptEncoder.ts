import { Result } from "effect"
import { ModelError } from "../domain/Errors.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { finish, type Paused } from "./Paused.ts"
import { type PreTokenizer, preTokenizerNames, preTokenizerOf } from "./PreTokenizers.ts"
import type { SectionCache } from "./SectionCache.ts"
import { SpecialTokens } from "./SpecialTokens.ts"
import { textIds, TextPipeline } from "./TextPipeline.ts"
import type { RenderedPrompt } from "./Tokenizer.ts"

/** Encodes prompts of one vocabulary in the calling thread. */
export class PromptEncoder {
  readonly specials: SpecialTokens
  /** Whether a prompt begins with BOS; its id. */
  readonly bosId: number | undefined
  readonly #text: TextPipeline

  private constructor(text: TextPipeline, specials: SpecialTokens, bosId: number | undefined) {
    this.#text = text
    this.specials = specials
    this.bosId = bosId
  }

  static make(vocabulary: Vocabulary): Result.Result<PromptEncoder, ModelError> {
    return Result.gen(function*() {
      const preTokenizer = yield* checkedPreTokenizer(vocabulary)
      const { ids, repeated } = textIds(vocabulary)
      if (repeated !== undefined) yield* refuse("Invalid", "tokenizer.ggml.tokens", `token ${repeated} has the text of another one`)
      const addsBos = vocabulary.addBos ?? preTokenizer?.addBos ?? true
      const text = new TextPipeline(vocabulary, preTokenizer, ids)
      return new PromptEncoder(text, new SpecialTokens(vocabulary), addsBos ? vocabulary.bosId : undefined)
    })
  }

  /** Ids of a prompt; ids of the texts between its special tokens come from the cache and go into it. */
  *encode(prompt: RenderedPrompt, cache: SectionCache, tenant: string): Paused<Int32Array<ArrayBuffer>> {
    const parts: Array<Int32Array | number> = []
    for (const part of this.specials.cut(prompt.text.toWellFormed(), prompt.untrusted)) {
      if (typeof part === "number") parts.push(part)
      else {
        let ids = cache.get(tenant, part)
        if (ids === undefined) {
          ids = yield* this.#text.encode(part)
          cache.set(tenant, part, ids)
          yield
        }
        parts.push(ids)
      }
    }
    return this.join(parts, prompt.addBos ?? true)
  }

  /** Ids of a text without special tokens. */
  encodeText(text: string): Int32Array {
    return finish(this.#text.encode(text))
  }

  tokenId(text: string): number | undefined {
    return this.specials.ids.get(text) ?? this.#text.ids.get(text)
  }

  /** One list of ids out of what {@link SpecialTokens.cut} gave; `addBos`: with BOS in front where the vocabulary wants one and the text has none. */
  join(parts: ReadonlyArray<Int32Array | number>, addBos = true): Int32Array<ArrayBuffer> {
    const bos = addBos && this.bosId !== undefined && parts[0] !== this.bosId ? this.bosId : undefined
    const length = parts.reduce<number>((total, part) => total + (typeof part === "number" ? 1 : part.length), bos === undefined ? 0 : 1)
    const ids = new Int32Array(length)
    let at = 0
    if (bos !== undefined) ids[at++] = bos
    for (const part of parts) {
      if (typeof part === "number") ids[at++] = part
      else {
        ids.set(part, at)
        at += part.length
      }
    }
    return ids
  }
}

/** Refuses a byte-level vocabulary whose pre-tokenizer is not known: a wrong one would degrade the model silently. */
const checkedPreTokenizer = (vocabulary: Vocabulary): Result.Result<PreTokenizer | undefined, ModelError> => {
  const found = preTokenizerOf(vocabulary)
  if (found !== undefined || vocabulary.model !== "gpt2") return Result.succeed(found)
  const { pre } = vocabulary
  if (pre === undefined) return refuse("Invalid", "tokenizer.ggml.pre", "the key is missing")
  return refuse(
    "Unsupported",
    "tokenizer.ggml.pre",
    `${JSON.stringify(pre.slice(0, 80))} is not a known pre-tokenizer; known are ${preTokenizerNames.join(", ")}`
  )
}

const refuse = (reason: ModelError["reason"], subject: string, fault: string): Result.Result<never, ModelError> =>
  Result.fail(new ModelError({ reason, message: `${subject}: ${fault}`, subject }))
