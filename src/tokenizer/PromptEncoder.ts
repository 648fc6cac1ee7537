import { Result } from "effect"
import { ModelError } from "../domain/Errors.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { type PreTokenizer, preTokenizerOf } from "./PreTokenizers.ts"
import { SpecialTokens } from "./SpecialTokens.ts"
import * as TokenizerJson from "./TokenizerJson.ts"

/** Encodes prompts of one vocabulary in the calling thread. */
export class PromptEncoder {
  readonly specials: SpecialTokens
  /** Whether a prompt begins with BOS; its id. */
  readonly bosId: number | undefined
  readonly #text: TokenizerJson.TextTokenizer

  private constructor(text: TokenizerJson.TextTokenizer, specials: SpecialTokens, bosId: number | undefined) {
    this.#text = text
    this.specials = specials
    this.bosId = bosId
  }

  static make(vocabulary: Vocabulary): Result.Result<PromptEncoder, ModelError> {
    return Result.gen(function*() {
      const preTokenizer = yield* checkedPreTokenizer(vocabulary)
      const { ids, repeated } = TokenizerJson.textIds(vocabulary)
      if (repeated !== undefined) yield* refuse("Invalid", "tokenizer.ggml.tokens", `token ${repeated} has the text of another one`)
      const addsBos = vocabulary.addBos ?? preTokenizer?.addBos ?? true
      const text = TokenizerJson.make(vocabulary, preTokenizer, ids)
      return new PromptEncoder(text, new SpecialTokens(vocabulary), addsBos ? vocabulary.bosId : undefined)
    })
  }

  /** Ids of a text without special tokens. */
  encodeText(text: string): Int32Array {
    return TokenizerJson.encode(this.#text, text)
  }

  tokenId(text: string): number | undefined {
    return this.specials.ids.get(text) ?? this.#text.token_to_id(text)
  }

  /** One list of ids out of what {@link SpecialTokens.cut} gave; `addBos`: with BOS in front where the vocabulary wants one and the text has none. */
  join(parts: ReadonlyArray<Int32Array | number>, addBos = true): Int32Array {
    const bos = addBos && this.bosId !== undefined && parts[0] !== this.bosId ? [this.bosId] : []
    const ids = new Int32Array(parts.reduce<number>((length, part) => length + (typeof part === "number" ? 1 : part.length), bos.length))
    let at = 0
    for (const part of [...bos, ...parts]) {
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
  return refuse("Unsupported", "tokenizer.ggml.pre", `${JSON.stringify(pre.slice(0, 80))} is not a known pre-tokenizer`)
}

const refuse = (reason: ModelError["reason"], subject: string, fault: string): Result.Result<never, ModelError> =>
  Result.fail(new ModelError({ reason, message: `${subject}: ${fault}`, subject }))
