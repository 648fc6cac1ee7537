import type { StreamDecoder } from "./Tokenizer.ts"
import type { TokenPieces } from "./TokenPieces.ts"

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
const none = new Uint8Array()

/**
 * Text out of tokens as the WHATWG UTF-8 decoder gives it in streaming mode: whole characters at once, an incomplete one is held back, an
 * impossible byte becomes U+FFFD as soon as it is seen.
 */
export class Utf8Stream implements StreamDecoder {
  readonly #pieces: TokenPieces
  /** An incomplete character: at most 3 bytes. */
  #held: Uint8Array = none
  #trim: boolean

  /** `trimSpace`: without the one space that tokenizers with a prefix space put before a whole document. */
  constructor(pieces: TokenPieces, trimSpace = false) {
    this.#pieces = pieces
    this.#trim = trimSpace
  }

  push(token: number): string {
    const text = this.#pieces.text(token)
    if (text === undefined) return this.#pushBytes(this.#pieces.bytes(token))
    if (text === "") return ""
    const broken = this.#held.length > 0 ? "\uFFFD" : ""
    this.#held = none
    if (!this.#trim) return broken + text
    this.#trim = false
    return text.startsWith(" ") ? text.slice(1) : text
  }

  end(): string {
    const rest = this.#held.length > 0 ? "\uFFFD" : ""
    this.#held = none
    return rest
  }

  #pushBytes(piece: Uint8Array): string {
    let bytes = piece
    if (this.#held.length > 0) bytes = Buffer.concat([this.#held, piece])
    else if (this.#trim && piece[0] === 0x20) bytes = piece.subarray(1)
    this.#trim = false
    const whole = bytes.length - incompleteTail(bytes)
    this.#held = bytes.slice(whole)
    return decoder.decode(bytes.subarray(0, whole))
  }
}

/** Length of the unfinished but so far valid character at the end (Unicode 15, table 3-7). */
const incompleteTail = (bytes: Uint8Array): number => {
  for (let length = 1; length <= Math.min(3, bytes.length); length++) {
    const lead = bytes[bytes.length - length] ?? 0
    if ((lead & 0xc0) === 0x80) continue
    const needed = lead < 0xc2 || lead > 0xf4 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    if (needed <= length) return 0
    return length === 1 || mayFollow(lead, bytes[bytes.length - length + 1] ?? 0) ? length : 0
  }
  return 0
}

const mayFollow = (lead: number, second: number): boolean => {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0
    case 0xed:
      return second < 0xa0
    case 0xf0:
      return second >= 0x90
    case 0xf4:
      return second < 0x90
    default:
      return true
  }
}
