import type { Vocabulary } from "../models/ModelMetadata.ts"
import * as TokenTypes from "./TokenTypes.ts"

const specialTypes = [TokenTypes.unknown, TokenTypes.control, TokenTypes.userDefined]

interface Node {
  readonly next: Map<number, Node>
  /** The token that ends here. */
  id: number | undefined
}

const node = (): Node => ({ next: new Map(), id: undefined })

/** Finds the texts of some of a vocabulary's tokens in a prompt. */
export class SpecialTokens {
  readonly ids: ReadonlyMap<string, number>
  readonly #root = node()
  readonly #begins = new Uint8Array(0x1_0000)

  /** Tokens of these types, by default the control and user-defined ones, that `accepts` takes, by default all but runs of white space. */
  constructor(
    vocabulary: Vocabulary,
    types: ReadonlyArray<number> = specialTypes,
    accepts: (token: string) => boolean = (token) => !TokenTypes.isSpaceRun(token)
  ) {
    const ids = new Map<string, number>()
    TokenTypes.forEachOfType(vocabulary, types, (token, id) => {
      if (token === "" || !accepts(token)) return
      ids.set(token, id)
      let at = this.#root
      for (let i = 0; i < token.length; i++) {
        const unit = token.charCodeAt(i)
        const next = at.next.get(unit) ?? node()
        at.next.set(unit, next)
        at = next
      }
      at.id = id
      this.#begins[token.charCodeAt(0)] = 1
    })
    this.ids = ids
  }

  /** The user-defined runs of white space (Gemma), which are looked up before text is merged. */
  static readonly spaceRuns = (vocabulary: Vocabulary): SpecialTokens =>
    new SpecialTokens(vocabulary, [TokenTypes.userDefined], TokenTypes.isSpaceRun)

  /**
   * Cuts a text at its special tokens, leftmost first and the longest there: ids, and the non-empty texts between them. A token counts
   * only where none of its characters lies in `untrusted` (half-open ranges of UTF-16 offsets, ascending and disjoint).
   */
  cut(text: string, untrusted: ReadonlyArray<readonly [start: number, end: number]>): Array<string | number> {
    if (this.ids.size === 0) return text === "" ? [] : [text]
    const ranges = untrusted.filter(([start, end]) => start < end)
    const parts: Array<string | number> = []
    let sectionStart = 0
    let range = 0
    let at = 0
    while (at < text.length) {
      while (range < ranges.length && (ranges[range]?.[1] ?? 0) <= at) range++
      const [rangeStart, rangeEnd] = ranges[range] ?? [text.length, text.length]
      if (at >= rangeStart) {
        at = rangeEnd
        continue
      }
      const found = this.#begins[text.charCodeAt(at)] === 1 ? this.#longestAt(text, at, rangeStart) : undefined
      if (found === undefined) {
        at++
        continue
      }
      if (sectionStart < at) parts.push(text.slice(sectionStart, at))
      parts.push(found.id)
      at = found.end
      sectionStart = at
    }
    if (sectionStart < text.length) parts.push(text.slice(sectionStart))
    return parts
  }

  #longestAt(text: string, at: number, end: number): { readonly id: number; readonly end: number } | undefined {
    let found: { readonly id: number; readonly end: number } | undefined
    let from: Node | undefined = this.#root
    while (at < end) {
      from = from.next.get(text.charCodeAt(at++))
      if (from === undefined) break
      if (from.id !== undefined) found = { id: from.id, end: at }
    }
    return found
  }
}
