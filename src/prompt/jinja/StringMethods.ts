import { Arguments } from "./Arguments.ts"
import { braceFormat } from "./Formatting.ts"
import { codePointLength, isText, join, mapText, offsetOfCodePoint, slice, type Text, textOf } from "./MarkedText.ts"
import { iterate } from "./PythonEquality.ts"
import type { Run } from "./Run.ts"
import { JinjaError, Tuple, typeName, type Value } from "./Values.ts"

/** What Python's `str.strip()` and `str.split()` take for white space. */
const whitespace: ReadonlySet<string> = new Set(
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)

/** Where Python's `str.splitlines()` ends a line, besides "\r\n". */
const lineEnds: ReadonlySet<string> = new Set("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

export const strip = (text: Text, characters: Text | undefined, sides: "both" | "left" | "right"): Text => {
  const plain = textOf(text)
  const set = characters === undefined ? undefined : new Set(textOf(characters))
  const strips = (character: string) => set === undefined ? whitespace.has(character) : set.has(character)
  let start = 0
  let end = plain.length
  if (sides !== "right") {
    while (start < end) {
      const character = String.fromCodePoint(plain.codePointAt(start) ?? 0)
      if (!strips(character)) break
      start += character.length
    }
  }
  if (sides !== "left") {
    while (end > start) {
      const low = plain.charCodeAt(end - 1)
      const paired = low >= 0xdc00 && low < 0xe000 && end - 2 >= start && (plain.charCodeAt(end - 2) & 0xfc00) === 0xd800
      const character = plain.slice(end - (paired ? 2 : 1), end)
      if (!strips(character)) break
      end -= character.length
    }
  }
  return slice(text, start, end)
}

export const words = (text: Text, limit = -1): Array<Text> => {
  const plain = textOf(text)
  const result: Array<Text> = []
  let at = 0
  for (;;) {
    while (at < plain.length && whitespace.has(plain.charAt(at))) at++
    if (at >= plain.length) return result
    if (limit >= 0 && result.length >= limit) {
      result.push(strip(slice(text, at), undefined, "right"))
      return result
    }
    const start = at
    while (at < plain.length && !whitespace.has(plain.charAt(at))) at++
    result.push(slice(text, start, at))
  }
}

/** Offsets at which `needle` occurs, left to right, without overlap. */
const occurrences = (text: Text, needle: Text, limit: number, run: Run): Array<number> => {
  const found: Array<number> = []
  const width = textOf(needle).length
  for (let at = run.find(text, needle); at >= 0 && found.length !== limit; at = run.find(text, needle, at + width)) found.push(at)
  return found
}

const split = (run: Run, text: Text, args: Arguments): Array<Value> => {
  const separator = args.text(0, "sep")
  const limit = args.integer(1, "maxsplit") ?? -1
  if (separator === undefined) return words(text, limit)
  const width = textOf(separator).length
  if (width === 0) throw new JinjaError("empty separator")
  const parts: Array<Value> = []
  let start = 0
  for (const at of occurrences(text, separator, limit, run)) {
    parts.push(slice(text, start, at))
    start = at + width
  }
  parts.push(slice(text, start))
  return parts
}

/** Last offset before `end` at which `needle` may be found. */
const findLast = (run: Run, text: Text, needle: Text, end: number): number => {
  let at = textOf(text).lastIndexOf(textOf(needle), end - textOf(needle).length)
  while (at >= 0 && !run.matchesAt(text, needle, at)) {
    run.step()
    at = at === 0 ? -1 : textOf(text).lastIndexOf(textOf(needle), at - 1)
  }
  return end < textOf(needle).length ? -1 : at
}

const splitFromRight = (run: Run, text: Text, args: Arguments): Array<Value> => {
  const separator = args.text(0, "sep")
  const limit = args.integer(1, "maxsplit") ?? -1
  if (separator === undefined) {
    if (limit >= 0) throw new JinjaError("rsplit() by white space with a limit is not supported")
    return words(text)
  }
  if (textOf(separator) === "") throw new JinjaError("empty separator")
  const parts: Array<Value> = []
  let end = textOf(text).length
  while (parts.length !== limit) {
    const at = findLast(run, text, separator, end)
    if (at < 0) break
    parts.push(slice(text, at + textOf(separator).length, end))
    end = at
  }
  parts.push(slice(text, 0, end))
  return parts.toReversed()
}

export const replace = (run: Run, text: Text, from: Text, to: Text, limit = -1): Text => {
  const pieces: Array<Text> = []
  let start = 0
  if (textOf(from) === "") {
    const offset = offsetOfCodePoint(textOf(text))
    const gaps = codePointLength(textOf(text)) + 1
    const count = limit < 0 ? gaps : Math.min(gaps, limit)
    for (let i = 0; i < count; i++) {
      pieces.push(slice(text, start, offset(i)))
      start = offset(i)
    }
  } else {
    for (const at of occurrences(text, from, limit, run)) {
      pieces.push(slice(text, start, at))
      start = at + textOf(from).length
    }
  }
  if (pieces.length === 0) return text
  pieces.push(slice(text, start))
  run.step(pieces.length)
  run.produce(textOf(text).length + pieces.length * textOf(to).length)
  return join(pieces, to)
}

const affix = (run: Run, args: Arguments, matches: (affix: Text) => boolean): boolean => {
  const wanted = args.required(0, "prefix")
  if (isText(wanted)) return matches(wanted)
  if (!(wanted instanceof Tuple)) {
    throw new JinjaError(`startswith first arg must be str or a tuple of str, not ${typeName(wanted)}`)
  }
  run.step(wanted.items.length)
  return wanted.items.some((item) => isText(item) && matches(item))
}

const endsWith = (run: Run, text: Text, suffix: Text): boolean =>
  textOf(text).endsWith(textOf(suffix)) && run.matchesAt(text, suffix, textOf(text).length - textOf(suffix).length)

/** UTF-16 range of optional `start` and `end` arguments in code points. */
const range = (text: Text, args: Arguments): readonly [number, number] => {
  const length = codePointLength(textOf(text))
  const offset = offsetOfCodePoint(textOf(text))
  const bound = (value: number) => offset(Math.max(0, Math.min(value < 0 ? value + length : value, length)))
  return [bound(args.integer(1, "start") ?? 0), bound(args.integer(2, "end") ?? length)]
}

const find = (run: Run, text: Text, args: Arguments, last: boolean): number => {
  const [start, end] = range(text, args)
  const part = slice(text, 0, end)
  const needle = args.requiredText(0, "sub")
  const at = last ? findLast(run, part, needle, end) : run.find(part, needle, start)
  return at < start ? -1 : codePointLength(textOf(text).slice(0, at))
}

const index = (run: Run, text: Text, args: Arguments, last: boolean): number => {
  const at = find(run, text, args, last)
  if (at < 0) throw new JinjaError("substring not found")
  return at
}

const upperFirst = (text: string): string => {
  const first = String.fromCodePoint(text.codePointAt(0) ?? 0)
  return text === "" ? "" : first.toUpperCase() + text.slice(first.length).toLowerCase()
}

export const capitalize = (text: Text): Text => {
  const plain = textOf(text)
  const first = plain === "" ? 0 : String.fromCodePoint(plain.codePointAt(0) ?? 0).length
  return join([mapText(slice(text, 0, first), upperFirst), mapText(slice(text, first), (s) => s.toLowerCase())], "")
}

const title = (text: Text): Text => mapText(text, (stretch) => stretch.replace(/\p{L}+/gu, upperFirst))

const swapCase = (stretch: string): string => Array.from(stretch, (c) => c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()).join("")

const partition = (run: Run, text: Text, args: Arguments, last: boolean): Tuple => {
  const separator = args.requiredText(0, "sep")
  const at = last ? findLast(run, text, separator, textOf(text).length) : run.find(text, separator)
  if (at < 0) return new Tuple(last ? ["", "", text] : [text, "", ""])
  const end = at + textOf(separator).length
  return new Tuple([slice(text, 0, at), slice(text, at, end), slice(text, end)])
}

export const splitLines = (text: Text, keepEnds: boolean): Array<Text> => {
  const lines: Array<Text> = []
  const plain = textOf(text)
  let start = 0
  for (let at = 0; at < plain.length; at++) {
    if (!lineEnds.has(plain.charAt(at))) continue
    const end = at + (plain.startsWith("\r\n", at) ? 2 : 1)
    lines.push(slice(text, start, keepEnds ? end : at))
    start = end
    at = end - 1
  }
  if (start < plain.length) lines.push(slice(text, start))
  return lines
}

type Method = (run: Run, text: Text, args: Arguments) => Value

export const justify = (run: Run, text: Text, width: number, fill: string, side: "left" | "right" | "center"): Text => {
  const length = codePointLength(textOf(text))
  const missing = width - length
  if (missing <= 0) return text
  run.produce(missing)
  const left = side === "right" ? missing : side === "left" ? 0 : (missing >> 1) + (missing & width & 1)
  return join([fill.repeat(left), text, fill.repeat(missing - left)], "")
}

const justified = (side: "left" | "right" | "center"): Method => (run, text, args) =>
  justify(run, text, args.integer(0, "width") ?? 0, textOf(args.text(1, "fillchar") ?? " "), side)

const zeroFill = (run: Run, text: Text, args: Arguments): Text => {
  const missing = (args.integer(0, "width") ?? 0) - codePointLength(textOf(text))
  if (missing <= 0) return text
  run.produce(missing)
  const sign = /^[-+]?/.exec(textOf(text))?.[0].length ?? 0
  return join([slice(text, 0, sign), "0".repeat(missing), slice(text, sign)], "")
}

/** Whether all characters, and at least one, match. */
const all = (pattern: RegExp): Method => (_, text) => pattern.test(textOf(text))

export const isUpper = (text: string): boolean => /\p{Lu}|\p{Lt}/u.test(text) && !/\p{Ll}/u.test(text)
export const isLower = (text: string): boolean => /\p{Ll}/u.test(text) && !/\p{Lu}|\p{Lt}/u.test(text)

const methods: ReadonlyMap<string, Method> = new Map<string, Method>([
  ["capitalize", (_, text) => capitalize(text)],
  ["casefold", (_, text) => mapText(text, (s) => s.replaceAll("ß", "ss").toLowerCase())],
  ["center", justified("center")],
  ["count", (run, text, args) => {
    const needle = args.requiredText(0, "sub")
    const [start, end] = range(text, args)
    if (textOf(needle) === "") return codePointLength(textOf(text).slice(start, end)) + 1
    return occurrences(slice(text, start, end), needle, -1, run).length
  }],
  ["endswith", (run, text, args) => affix(run, args, (suffix) => endsWith(run, text, suffix))],
  ["find", (run, text, args) => find(run, text, args, false)],
  ["format", (run, text, args) => braceFormat(text, args.positional, args.keywords, run)],
  ["index", (run, text, args) => index(run, text, args, false)],
  ["isalnum", all(/^[\p{L}\p{N}]+$/u)],
  ["isalpha", all(/^\p{L}+$/u)],
  ["isascii", (_, text) => !/[^\p{ASCII}]/u.test(textOf(text))],
  ["isdecimal", all(/^\p{Nd}+$/u)],
  ["isdigit", all(/^[\p{Nd}\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]+$/u)],
  ["islower", (_, text) => isLower(textOf(text))],
  ["isnumeric", all(/^\p{N}+$/u)],
  ["isspace", (_, text) => textOf(text) !== "" && textOf(strip(text, undefined, "left")) === ""],
  ["isupper", (_, text) => isUpper(textOf(text))],
  ["join", (run, text, args) => {
    const items = iterate(args.required(0, "iterable"), run).map((item, at) => {
      if (!isText(item)) throw new JinjaError(`sequence item ${at}: expected str instance, ${typeName(item)} found`)
      run.produce(textOf(item).length + textOf(text).length)
      return item
    })
    return join(items, text)
  }],
  ["ljust", justified("left")],
  ["lower", (_, text) => mapText(text, (s) => s.toLowerCase())],
  ["lstrip", (_, text, args) => strip(text, args.text(0, "chars"), "left")],
  ["partition", (run, text, args) => partition(run, text, args, false)],
  ["removeprefix", (run, text, args) => {
    const prefix = args.requiredText(0, "prefix")
    return run.matchesAt(text, prefix, 0) ? slice(text, textOf(prefix).length) : text
  }],
  ["removesuffix", (run, text, args) => {
    const suffix = args.requiredText(0, "suffix")
    return endsWith(run, text, suffix) ? slice(text, 0, textOf(text).length - textOf(suffix).length) : text
  }],
  [
    "replace",
    (run, text, args) => replace(run, text, args.requiredText(0, "old"), args.requiredText(1, "new"), args.integer(2, "count") ?? -1)
  ],
  ["rfind", (run, text, args) => find(run, text, args, true)],
  ["rindex", (run, text, args) => index(run, text, args, true)],
  ["rjust", justified("right")],
  ["rpartition", (run, text, args) => partition(run, text, args, true)],
  ["rsplit", splitFromRight],
  ["rstrip", (_, text, args) => strip(text, args.text(0, "chars"), "right")],
  ["split", split],
  ["splitlines", (_, text, args) => splitLines(text, args.get(0, "keepends") === true)],
  ["startswith", (run, text, args) => affix(run, args, (prefix) => run.matchesAt(text, prefix, 0))],
  ["strip", (_, text, args) => strip(text, args.text(0, "chars"), "both")],
  ["swapcase", (_, text) => mapText(text, swapCase)],
  ["title", (_, text) => title(text)],
  ["upper", (_, text) => mapText(text, (s) => s.toUpperCase())],
  ["zfill", zeroFill]
])

/** A method of Python's `str`. */
export const stringMethod = (name: string): ((run: Run, text: Text, args: Arguments) => Value) | undefined => {
  const method = methods.get(name)
  return method === undefined ? undefined : (run, text, args) => {
    run.step(1 + (textOf(text).length >> 6))
    return method(run, text, args)
  }
}
