import type { Vocabulary } from "../models/ModelMetadata.ts"
import * as TokenTypes from "./TokenTypes.ts"

const specialTypes = [TokenTypes.unknown, TokenTypes.control, TokenTypes.userDefined]

/** Finds the texts of control and user-defined tokens in a prompt. Runs of white space are not among them. */
export class SpecialTokens {
  readonly ids: ReadonlyMap<string, number>
  /** Lengths of the texts that begin with a UTF-16 unit, longest first. */
  readonly #lengths: ReadonlyMap<number, ReadonlyArray<number>>
  readonly #begins = new Uint8Array(0x1_0000)

  constructor(vocabulary: Vocabulary, types: ReadonlyArray<number> = specialTypes) {
    const ids = new Map<string, number>()
    const lengths = new Map<number, Set<number>>()
    TokenTypes.forEachOfType(vocabulary, types, (token, id) => {
      if (token === "" || TokenTypes.isSpaceRun(token)) return
      const first = token.charCodeAt(0)
      ids.set(token, id)
      lengths.set(first, (lengths.get(first) ?? new Set()).add(token.length))
      this.#begins[first] = 1
    })
    this.ids = ids
    this.#lengths = new Map(Array.from(lengths, ([first, set]) => [first, Array.from(set).toSorted((a, b) => b - a)]))
  }

  /**
   * Cuts a text at its special tokens, leftmost first and the longest there: ids, and the non-empty texts between them. A token counts
   * only where none of its characters lies in `untrusted` (half-open ranges of UTF-16 offsets, ascending and disjoint).
   */
  cut(text: string, untrusted: ReadonlyArray<readonly [start: number, end: number]>): Array<string | number> {
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
      const token = this.#begins[text.charCodeAt(at)] === 1 ? this.#longestAt(text, at, rangeStart) : undefined
      if (token === undefined) {
        at++
        continue
      }
      if (sectionStart < at) parts.push(text.slice(sectionStart, at))
      parts.push(this.ids.get(token) ?? 0)
      at += token.length
      sectionStart = at
    }
    if (sectionStart < text.length) parts.push(text.slice(sectionStart))
    return parts
  }

  #longestAt(text: string, at: number, end: number): string | undefined {
    for (const length of this.#lengths.get(text.charCodeAt(at)) ?? []) {
      if (at + length > end) continue
      const token = text.slice(at, at + length)
      if (this.ids.has(token)) return token
    }
    return undefined
  }
}
