import type { Tokenizer as HfTokenizer } from "@huggingface/tokenizers"
import { Result } from "effect"
import type { ModelError } from "../domain/Errors.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { SpecialTokens } from "./SpecialTokens.ts"
import * as TokenizerJson from "./TokenizerJson.ts"

/** Encodes prompts of one vocabulary in the calling thread. */
export class PromptEncoder {
  readonly specials: SpecialTokens
  /** Whether a prompt begins with BOS; its id. */
  readonly bosId: number | undefined
  readonly #text: HfTokenizer

  private constructor(text: HfTokenizer, specials: SpecialTokens, bosId: number | undefined) {
    this.#text = text
    this.specials = specials
    this.bosId = bosId
  }

  static make(vocabulary: Vocabulary): Result.Result<PromptEncoder, ModelError> {
    return Result.gen(function*() {
      const text = yield* TokenizerJson.make(vocabulary)
      const preTokenizer = yield* TokenizerJson.preTokenizerOf(vocabulary)
      const addsBos = vocabulary.addBos ?? preTokenizer?.addBos ?? true
      return new PromptEncoder(text, new SpecialTokens(vocabulary), addsBos ? vocabulary.bosId : undefined)
    })
  }

  /** Ids of a text without special tokens. */
  encodeText(text: string): Int32Array {
    return Int32Array.from(this.#text.encode(text, { add_special_tokens: false }).ids)
  }

  tokenId(text: string): number | undefined {
    return this.specials.ids.get(text) ?? this.#text.token_to_id(text)
  }

  /** One list of ids out of what {@link SpecialTokens.cut} gave, with BOS in front where the vocabulary wants one and the text has none. */
  join(parts: ReadonlyArray<Int32Array | number>): Int32Array {
    const bos = this.bosId !== undefined && parts[0] !== this.bosId ? [this.bosId] : []
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
