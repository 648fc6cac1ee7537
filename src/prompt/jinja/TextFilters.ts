import { attributePath } from "./Attributes.ts"
import type { Filter } from "./Filter.ts"
import { concat, isText, join, mapText, slice, type Text, textOf } from "./MarkedText.ts"
import { iterate } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import type { Run } from "./Run.ts"
import { splitLines } from "./StringMethods.ts"
import { isTrue, JinjaError, lengthOf, typeName, Undefined, undefinedError, type Value } from "./Values.ts"

const needText = (value: Value, name: string): Text => {
  if (isText(value)) return value
  throw value instanceof Undefined ? undefinedError(value) : new JinjaError(`${name} needs text, not ${typeName(value)}`)
}

export const indent: Filter = (run, value, args) => {
  const text = needText(value, "indent")
  const width = args.get(0, "width") ?? 4
  const prefix = isText(width) ? width : typeof width === "number" ? " ".repeat(Math.max(0, Math.min(width, 10_000))) : ""
  const indentFirst = isTrue(args.get(1, "first") ?? false)
  const indentBlank = isTrue(args.get(2, "blank") ?? false)
  const lines = splitLines(concat(text, "\n"), false)
  run.step(lines.length)
  run.produce(textOf(text).length + lines.length * textOf(prefix).length)
  return join(
    lines.map((line, index) =>
      index === 0 ? (indentFirst ? concat(prefix, line) : line) : line === "" && !indentBlank ? line : concat(prefix, line)
    ),
    "\n"
  )
}

export const joinFilter: Filter = (run, value, args) => {
  const attribute = args.get(1, "attribute")
  const separator = args.text(0, "d") ?? ""
  const pieces = iterate(value, run).map((item) => {
    const piece = stringOf(attribute === undefined || attribute === null ? item : attributePath(item, attribute), run)
    run.produce(textOf(piece).length + textOf(separator).length)
    return piece
  })
  return join(pieces, separator)
}

const subscriptRange = (text: Text, count: number, run: Run): Text =>
  join(iterate(text, run).slice(0, Math.max(0, count)).map((c) => isText(c) ? c : ""), "")

export const truncate: Filter = (run, value, args) => {
  const length = args.integer(0, "length") ?? 255
  const killWords = isTrue(args.get(1, "killwords") ?? false)
  const end = args.text(2, "end") ?? "..."
  const leeway = args.integer(3, "leeway") ?? 5
  if (lengthOf(value) <= length + leeway) return value
  const text = needText(value, "truncate")
  const kept = subscriptRange(text, length - lengthOf(end), run)
  return concat(killWords ? kept : slice(kept, 0, Math.max(0, textOf(kept).lastIndexOf(" ")) || textOf(kept).length), end)
}

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", "\"": "&#34;" }

export const escape: Filter = (run, value) =>
  mapText(stringOf(value, run), (stretch) => stretch.replace(/[&<>'"]/g, (character) => escapes[character] ?? character))

export const quoteUrl = (stretch: string): string =>
  encodeURIComponent(stretch.toWellFormed()).replaceAll("%2F", "/").replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`
  )

export const titleWords = (stretch: string): string =>
  stretch.replace(/[^-\s({[<]+/g, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
