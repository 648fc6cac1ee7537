import {
  classesAt,
  letter,
  lower,
  mark,
  number,
  punctuation,
  runOf,
  runOfOthers,
  space,
  symbol,
  upper,
  widthAt
} from "./CharacterClasses.ts"

/**
 * One alternative of a pre-tokenizer's regular expression, matched at one place of a well-formed text as if the text ended at `end`: where the
 * match ends, or -1. Written out since the platform's engine gives up ("Maximum call stack size exceeded") on runs of a million characters.
 */
export type Matcher = (text: string, at: number, end: number) => number

const apostrophe = 0x27
const slash = 0x2f

export const isLineEnd = (unit: number): boolean => unit === 0x0a || unit === 0x0d

export const isLineEndOrSlash = (unit: number): boolean => isLineEnd(unit) || unit === slash

const none = -1

/** The first of the alternatives that matches. */
export const firstOf = (...alternatives: ReadonlyArray<Matcher>): Matcher => (text, at, end) => {
  for (const alternative of alternatives) {
    const matched = alternative(text, at, end)
    if (matched >= 0) return matched
  }
  return none
}

/** `'s|'t|'re|'ve|'m|'ll|'d` */
export const contraction: Matcher = (text, at, end) =>
  text.charCodeAt(at) === apostrophe ? contractionEnd(text.slice(at + 1, Math.min(end, at + 3)), at) : none

/** The same under `(?i:…)`, for which the long s (U+017F) is an s too. */
export const anyContraction: Matcher = (text, at, end) =>
  text.charCodeAt(at) === apostrophe
    ? contractionEnd(text.slice(at + 1, Math.min(end, at + 3)).replace("\u017f", "s").toLowerCase(), at)
    : none

const contractionEnd = (suffix: string, at: number): number =>
  /^[stmd]/.test(suffix) ? at + 2 : suffix === "re" || suffix === "ve" || suffix === "ll" ? at + 3 : none

/** `[^\r\n EXCLUDED]? RUN+` */
export const prefixed = (run: number, excluded: number): Matcher => (text, at, end) => {
  if (mayPrefix(text, at, excluded)) {
    const start = at + widthAt(text, at)
    const matched = runOf(text, start, end, run)
    if (matched > start) return matched
  }
  const matched = runOf(text, at, end, run)
  return matched > at ? matched : none
}

const mayPrefix = (text: string, at: number, excluded: number): boolean =>
  !isLineEnd(text.charCodeAt(at)) && (classesAt(text, at) & excluded) === 0

/** `[^\r\n\p{L}\p{N}]? UPPER* LOWER+ | [^\r\n\p{L}\p{N}]? UPPER+ LOWER*`, each with an optional suffix. */
export const cased = (suffix?: Matcher): Matcher => (text, at, end) => {
  const prefix = mayPrefix(text, at, letter | number)
  const start = prefix ? at + widthAt(text, at) : at
  let matched = prefix ? lowerEnded(text, start, end) : none
  if (matched < 0) matched = lowerEnded(text, at, end)
  if (matched < 0 && prefix) matched = upperBegun(text, start, end)
  if (matched < 0) matched = upperBegun(text, at, end)
  if (matched < 0 || suffix === undefined || matched === end) return matched
  return Math.max(matched, suffix(text, matched, end))
}

/** `UPPER* LOWER+` */
const lowerEnded: Matcher = (text, at, end) => {
  const bound = runOf(text, at, end, upper)
  const matched = runOf(text, bound, end, lower)
  if (matched > bound) return matched
  // UPPER* gives back until a character of both classes is left for LOWER+.
  let last = bound
  while (last > at) {
    const start = (text.charCodeAt(last - 1) & 0xfc00) === 0xdc00 ? last - 2 : last - 1
    if ((classesAt(text, start) & lower) !== 0) return last
    last = start
  }
  return none
}

/** `UPPER+ LOWER*` */
const upperBegun: Matcher = (text, at, end) => {
  const bound = runOf(text, at, end, upper)
  return bound > at ? runOf(text, bound, end, lower) : none
}

/** `\p{N}{1,most}` */
export const digits = (most: number): Matcher => (text, at, end) => {
  let matched = at
  for (let count = 0; count < most && matched < end && (classesAt(text, matched) & number) !== 0; count++) matched += widthAt(text, matched)
  return matched > at ? matched : none
}

const afterSpace = (text: string, at: number) => text.charCodeAt(at) === 0x20 ? at + 1 : at

/** ` ?RUN+` */
export const spaced = (run: number): Matcher => (text, at, end) => {
  const start = afterSpace(text, at)
  const matched = runOf(text, start, end, run)
  return matched > start ? matched : none
}

/** ` ?[^\s EXCLUDED]+` and the units of a tail that follow. */
export const spacedOthers = (excluded: number, isTail?: (unit: number) => boolean): Matcher => (text, at, end) => {
  const start = afterSpace(text, at)
  const matched = runOfOthers(text, start, end, excluded)
  return matched > start ? (isTail === undefined ? matched : tailEnd(text, matched, end, isTail)) : none
}

const tailEnd = (text: string, at: number, end: number, isTail: (unit: number) => boolean): number => {
  while (at < end && isTail(text.charCodeAt(at))) at++
  return at
}

/** `\s*[\r\n]+` */
export const lineEnds: Matcher = (text, at, end) => {
  for (let last = runOf(text, at, end, space); last > at; last--) if (isLineEnd(text.charCodeAt(last - 1))) return last
  return none
}

/** `\s+(?!\S)|\s+` */
export const spaces: Matcher = (text, at, end) => {
  const matched = runOf(text, at, end, space)
  if (matched === at) return none
  return matched === end || matched === at + 1 ? matched : matched - 1
}

/** `[^\n]+|\n+` */
export const linesAndBreaks: Matcher = (text, at, end) => {
  const isBreak = text.charCodeAt(at) === 0x0a
  let matched = at
  if (isBreak) { while (matched < end && text.charCodeAt(matched) === 0x0a) matched++ }
  else {
    const next = text.indexOf("\n", at)
    matched = next < 0 ? end : Math.min(next, end)
  }
  return matched
}

const block = 0x2581

/** `▁+[^▁]*|[^▁]+`: SentencePiece's words. */
export const blockWords: Matcher = (text, at, end) => {
  let start = at
  while (start < end && text.charCodeAt(start) === block) start++
  const next = text.indexOf("\u2581", start)
  return next < 0 ? end : Math.min(next, end)
}

const isAsciiLetter = (unit: number) => (unit >= 0x41 && unit <= 0x5a) || (unit >= 0x61 && unit <= 0x7a)

const isAsciiPunctuation = (unit: number) => unit > 0x20 && unit < 0x7f && !isAsciiLetter(unit) && (unit < 0x30 || unit > 0x39)

/** `[!-/:-@[-`{-~][A-Za-z]+` */
export const punctuatedWord: Matcher = (text, at, end) => {
  if (!isAsciiPunctuation(text.charCodeAt(at))) return none
  let matched = at + 1
  while (matched < end && isAsciiLetter(text.charCodeAt(matched))) matched++
  return matched > at + 1 ? matched : none
}

/** ` ?[\p{P}\p{S}]+[\r\n]*` */
export const spacedPunctuation: Matcher = (text, at, end) => {
  const matched = spaced(punctuation | symbol)(text, at, end)
  return matched < 0 ? none : tailEnd(text, matched, end, isLineEnd)
}

/** `[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+` */
export const hanAndKana: Matcher = (text, at, end) => {
  let matched = at
  while (matched < end && isHanOrKana(text.charCodeAt(matched))) matched++
  return matched > at ? matched : none
}

const isHanOrKana = (unit: number) => (unit >= 0x4e00 && unit <= 0x9fa5) || (unit >= 0x3040 && unit <= 0x30ff)

/** Letters and marks after a character of another kind. */
export const markedWord: Matcher = prefixed(letter | mark, letter | punctuation | symbol)

/**
 * The pieces of a text: the first matcher's matches and the gaps between them, each of these cut by the second matcher, and so on. Without
 * a matcher the whole text is one piece.
 */
export class Pieces {
  start = 0
  end = 0
  readonly #text: string
  readonly #matchers: ReadonlyArray<Matcher>
  /** For each matcher, where the stretch ends that it cuts. */
  readonly #limits: Array<number>

  constructor(text: string, matchers: ReadonlyArray<Matcher>) {
    this.#text = text
    this.#matchers = matchers
    this.#limits = [text.length, ...matchers.map(() => 0)]
  }

  /** Moves [start, end) to the next piece; false where there is none. */
  next(): boolean {
    const at = this.end
    if (at >= this.#text.length) return false
    let depth = this.#matchers.length
    while (depth > 0 && (this.#limits[depth] ?? 0) <= at) depth--
    for (; depth < this.#matchers.length; depth++) {
      const matcher = this.#matchers[depth]
      if (matcher !== undefined) this.#limits[depth + 1] = pieceEnd(matcher, this.#text, at, this.#limits[depth] ?? 0)
    }
    this.start = at
    this.end = this.#limits[depth] ?? this.#text.length
    return true
  }
}

/** End of the match at `at`, or of the gap before the next one. */
const pieceEnd = (matcher: Matcher, text: string, at: number, end: number): number => {
  const matched = matcher(text, at, end)
  if (matched >= 0) return matched
  let gap = at + widthAt(text, at)
  while (gap < end && matcher(text, gap, end) < 0) gap += widthAt(text, gap)
  return gap
}
