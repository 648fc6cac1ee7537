/** A set of Unicode scalar values: sorted ranges that neither overlap nor touch, both ends included. */
export type CodePoints = ReadonlyArray<readonly [first: number, last: number]>

export const none: CodePoints = []

/** Every code point but the surrogates, which no UTF-8 text has. */
export const all: CodePoints = [[0, 0xd7ff], [0xe000, 0x10ffff]]

export const of = (...ranges: ReadonlyArray<readonly [number, number]>): CodePoints => intersection(all, normalized(ranges))

/** The characters of a text. */
export const among = (characters: string): CodePoints =>
  of(...Array.from(characters, (character): readonly [number, number] => {
    const point = character.codePointAt(0) ?? 0
    return [point, point]
  }))

const normalized = (ranges: ReadonlyArray<readonly [number, number]>): CodePoints => {
  const sorted = ranges.toSorted((a, b) => a[0] - b[0])
  const merged: Array<[number, number]> = []
  for (const [first, last] of sorted) {
    const previous = merged.at(-1)
    if (previous !== undefined && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last)
    else merged.push([first, last])
  }
  return merged
}

export const union = (...sets: ReadonlyArray<CodePoints>): CodePoints => intersection(all, normalized(sets.flat()))

export const intersection = (a: CodePoints, b: CodePoints): CodePoints => {
  const common: Array<readonly [number, number]> = []
  let i = 0
  let j = 0
  for (;;) {
    const left = a[i]
    const right = b[j]
    if (left === undefined || right === undefined) return common
    const first = Math.max(left[0], right[0])
    const last = Math.min(left[1], right[1])
    if (first <= last) common.push([first, last])
    if (left[1] < right[1]) i++
    else j++
  }
}

export const complement = (set: CodePoints): CodePoints => {
  const gaps: Array<readonly [number, number]> = []
  let next = 0
  for (const [first, last] of set) {
    if (first > next) gaps.push([next, first - 1])
    next = last + 1
  }
  if (next <= 0x10ffff) gaps.push([next, 0x10ffff])
  return intersection(all, gaps)
}

export const difference = (a: CodePoints, b: CodePoints): CodePoints => intersection(a, complement(b))

export const has = (set: CodePoints, point: number): boolean => {
  let low = 0
  let high = set.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const range = set[middle]
    if (range === undefined || point < range[0]) high = middle - 1
    else if (point > range[1]) low = middle + 1
    else return true
  }
  return false
}
