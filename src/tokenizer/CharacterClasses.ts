export const letter = 1
export const number = 2
export const space = 4
export const mark = 8
/** What may stand before the lower case of a word: upper and title case, letters without case, marks. */
export const upper = 16
/** What may stand after the upper case of a word: lower case, letters without case, marks. */
export const lower = 32
export const punctuation = 64
export const symbol = 128

const patterns: ReadonlyArray<readonly [number, RegExp]> = [
  [letter, /\p{L}/u],
  [number, /\p{N}/u],
  [space, /\p{White_Space}/u],
  [mark, /\p{M}/u],
  [upper, /[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]/u],
  [lower, /[\p{Ll}\p{Lm}\p{Lo}\p{M}]/u],
  [punctuation, /\p{P}/u],
  [symbol, /\p{S}/u]
]

const pageSize = 256
const pages: Array<Uint8Array | undefined> = Array.from({ length: 0x11_0000 / pageSize })

/** Classes of the 256 characters from `first` on, found when the first text needs them. */
const makePage = (first: number): Uint8Array =>
  Uint8Array.from({ length: pageSize }, (_, i) => {
    const character = String.fromCodePoint(first + i)
    return patterns.reduce((classes, [bit, pattern]) => pattern.test(character) ? classes | bit : classes, 0)
  })

/** The classes of a code point, as bits. */
export const classesOf = (codePoint: number): number => {
  const page = codePoint >> 8
  return (pages[page] ??= makePage(page * pageSize))[codePoint & 0xff] ?? 0
}

const isLead = (unit: number) => (unit & 0xfc00) === 0xd800

/** The classes of the character at `at` of a well-formed text. */
export const classesAt = (text: string, at: number): number => {
  const unit = text.charCodeAt(at)
  return classesOf(isLead(unit) ? text.codePointAt(at) ?? unit : unit)
}

/** UTF-16 units of the character at `at` of a well-formed text. */
export const widthAt = (text: string, at: number): 1 | 2 => isLead(text.charCodeAt(at)) ? 2 : 1

/** End of the longest stretch of [at, end) whose characters are in one of the classes. */
export const runOf = (text: string, at: number, end: number, classes: number): number => {
  while (at < end && (classesAt(text, at) & classes) !== 0) at += widthAt(text, at)
  return at
}

/** End of the longest stretch of [at, end) whose characters are in none of the classes. */
export const runOfOthers = (text: string, at: number, end: number, classes: number): number => {
  while (at < end && (classesAt(text, at) & classes) === 0) at += widthAt(text, at)
  return at
}
