import { isUtf8 } from "node:buffer"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { fromAlphabet } from "./ByteAlphabet.ts"
import * as TokenTypes from "./TokenTypes.ts"

const none = new Uint8Array()

/** What each token of a vocabulary adds to the output, in bytes. */
export class TokenPieces {
  readonly #vocabulary: Vocabulary
  readonly #shown: boolean | ReadonlySet<string>
  readonly #texts: Array<string | undefined> = []

  /** `shown`: control and unknown tokens stand for their own text instead of nothing, all of them or those with one of these texts. */
  constructor(vocabulary: Vocabulary, shown: boolean | ReadonlySet<string> = false) {
    this.#vocabulary = vocabulary
    this.#shown = shown
  }

  bytes(id: number): Uint8Array {
    const token = this.#vocabulary.tokens[id]
    if (token === undefined) return none
    switch (this.#vocabulary.types[id]) {
      case TokenTypes.unknown:
      case TokenTypes.control:
        return this.#shown === true || (this.#shown !== false && this.#shown.has(token)) ? Buffer.from(token) : none
      case TokenTypes.userDefined:
        return Buffer.from(token)
      case TokenTypes.unused:
        return none
      case TokenTypes.byte:
        return Uint8Array.of(Number.parseInt(token.slice(3, 5), 16))
      default:
        return this.#vocabulary.model === "gpt2" ? fromAlphabet(token) : Buffer.from(token.replaceAll("\u2581", " "))
    }
  }

  /** The token's text where its bytes are whole characters, else undefined. */
  text(id: number): string | undefined {
    const known = this.#texts[id]
    if (known !== undefined) return known
    const bytes = this.bytes(id)
    if (!isUtf8(bytes)) return undefined
    const text = Buffer.from(bytes).toString()
    if (id in this.#vocabulary.tokens) this.#texts[id] = text
    return text
  }
}
