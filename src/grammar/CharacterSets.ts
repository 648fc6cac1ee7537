import * as CodePoints from "./CodePoints.ts"

export const digits = CodePoints.of([0x30, 0x39])

/** `\w` of ECMA-262. */
export const wordCharacters = CodePoints.of([0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a])

/** `\s` of ECMA-262: WhiteSpace and LineTerminator. */
export const spaces = CodePoints.of(
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff]
)

/** What `.` passes over in ECMA-262. */
export const lineTerminators = CodePoints.of([0x0a, 0x0a], [0x0d, 0x0d], [0x2028, 0x2029])

/** Where Unicode has anything: planes 0 to 3, the tags and variation selectors, and the last two code points of a plane, which are none. */
const inhabited = CodePoints.of([0, 0x3ffff], [0xe0000, 0xe0fff], [0xefffe, 0xf0000], [0xffffe, 0x100000], [0x10fffe, 0x10ffff])

/** What lies between is all alike: unassigned, or for private use. Each run is judged by its first code point. */
const alike = CodePoints.complement(inhabited)

let everyCharacter: string | undefined

/** The inhabited characters in order, and the first of each run of those that are alike. */
const alphabet = (): string => {
  if (everyCharacter !== undefined) return everyCharacter
  const points: Array<number> = []
  for (const [first, last] of inhabited) for (let point = first; point <= last; point++) points.push(point)
  for (const [first] of alike) points.push(first)
  points.sort((a, b) => a - b)
  const parts: Array<string> = []
  for (let start = 0; start < points.length; start += 0x1000) parts.push(String.fromCodePoint(...points.slice(start, start + 0x1000)))
  everyCharacter = parts.join("")
  return everyCharacter
}

const properties = new Map<string, CodePoints.CodePoints | undefined>()

/** The characters of `\p{expression}`, as the runtime's Unicode tables have them; undefined: no such property. */
export const unicodeProperty = (expression: string): CodePoints.CodePoints | undefined => {
  if (!/^[A-Za-z_]+(=[A-Za-z0-9_]+)?$/.test(expression)) return undefined
  if (properties.has(expression)) return properties.get(expression)
  let points: CodePoints.CodePoints | undefined
  try {
    const ranges: Array<readonly [number, number]> = []
    for (const [run] of alphabet().matchAll(new RegExp(`\\p{${expression}}+`, "gu"))) {
      const [first, last] = [run.codePointAt(0) ?? 0, run.codePointAt(lastIndex(run)) ?? 0]
      ranges.push([first, last])
    }
    const found = CodePoints.of(...ranges)
    points = CodePoints.union(CodePoints.intersection(found, inhabited), ...alike.map((run) => CodePoints.has(found, run[0]) ? [run] : []))
  } catch {
    points = undefined
  }
  if (properties.size < 256) properties.set(expression, points)
  return points
}

const lastIndex = (run: string): number =>
  run.length >= 2 && run.charCodeAt(run.length - 1) >= 0xdc00 && run.charCodeAt(run.length - 1) <= 0xdfff
    ? run.length - 2
    : run.length - 1

let cases: ReadonlyArray<readonly [number, ReadonlyArray<number>]> | undefined

/** Each character that has others which differ in case only, with these. */
const casePairs = (): ReadonlyArray<readonly [number, ReadonlyArray<number>]> => {
  if (cases !== undefined) return cases
  const byFold = new Map<string, Array<number>>()
  // The last character with a case in Unicode is U+1E943.
  for (let point = 0; point < 0x1f000; point++) {
    if (point >= 0xd800 && point <= 0xdfff) continue
    const character = String.fromCodePoint(point)
    const fold = character.toUpperCase().toLowerCase()
    if (fold === character && character.toUpperCase() === character) continue
    const group = byFold.get(fold)
    if (group === undefined) byFold.set(fold, [point])
    else group.push(point)
  }
  cases = [...byFold.values()].filter((group) => group.length > 1).flatMap((group) =>
    group.map((point): readonly [number, ReadonlyArray<number>] => [point, group])
  )
  return cases
}

/** The set and what differs from its characters in case only. */
export const withoutCase = (points: CodePoints.CodePoints): CodePoints.CodePoints =>
  CodePoints.union(
    points,
    casePairs().filter(([point]) => CodePoints.has(points, point)).flatMap(([, others]) => others.map((other) => [other, other] as const))
  )
