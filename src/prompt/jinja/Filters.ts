import { Arguments } from "./Arguments.ts"
import { attributePath, subscript } from "./Attributes.ts"
import { percentFormat } from "./Formatting.ts"
import { readJson, writeJson } from "./Json.ts"
import { concat, isText, join, mapText, slice, type Text, textOf } from "./MarkedText.ts"
import { add, negate } from "./Operators.ts"
import { compare, isEqual, iterate, numberOf } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import type { Run } from "./Run.ts"
import { capitalize, replace, splitLines, strip } from "./StringMethods.ts"
import { test } from "./Tests.ts"
import {
  Dict,
  Float,
  Generator,
  integer,
  isTrue,
  JinjaError,
  lengthOf,
  Tuple,
  typeName,
  Undefined,
  undefinedError,
  type Value
} from "./Values.ts"

/** `value`, which may be None, or the other where there is none. */
const orElse = (value: Value | undefined, other: Value): Value => value === undefined ? other : value

export type Filter = (run: Run, value: Value, args: Arguments) => Value

/** Filters and tests that take texts without regard to case unless asked otherwise. */
const folded = (value: Value, caseSensitive: boolean): Value => isText(value) && !caseSensitive ? textOf(value).toLowerCase() : value

const sortKey = (args: Arguments, attributeIndex: number, caseIndex: number): (item: Value) => Value => {
  const attribute = args.get(attributeIndex, "attribute")
  const caseSensitive = isTrue(args.get(caseIndex, "case_sensitive") ?? false)
  return (item) => folded(attribute === undefined || attribute === null ? item : attributePath(item, attribute), caseSensitive)
}

const sorted = (items: ReadonlyArray<Value>, key: (item: Value) => Value, reverse: boolean, run: Run): Array<Value> => {
  const keyed = items.map((item) => ({ item, key: key(item) }))
  keyed.sort((left, right) => reverse ? compare(right.key, left.key, "<", run) : compare(left.key, right.key, "<", run))
  return keyed.map(({ item }) => item)
}

const dictSort: Filter = (run, value, args) => {
  if (!(value instanceof Dict)) {
    throw value instanceof Undefined
      ? undefinedError(value)
      : new JinjaError(`dictsort needs a dict, not ${typeName(value)}`)
  }
  const caseSensitive = isTrue(args.get(0, "case_sensitive") ?? false)
  const by = args.get(1, "by") === undefined ? "key" : args.word(1, "by")
  const reverse = isTrue(args.get(2, "reverse") ?? false)
  const position = by === "value" ? 1 : 0
  return sorted(value.items(), (item) => folded(subscript(item, position), caseSensitive), reverse, run)
}

const select = (keep: boolean, byAttribute: boolean): Filter => (run, value, args) => {
  const first = byAttribute ? 1 : 0
  const name = args.positional.length > first ? args.word(first, "test") : undefined
  const found = name === undefined ? undefined : test(name)
  if (name !== undefined && found === undefined) throw new JinjaError(`No test named '${name}'.`)
  const rest = args.positional.slice(first + 1)
  const path = byAttribute ? args.required(0, "attribute") : null
  return new Generator(
    iterate(value, run).filter((item) => {
      run.step()
      const subject = byAttribute ? attributePath(item, path) : item
      return (found === undefined ? isTrue(subject) : found(run, subject, rest)) === keep
    })
  )
}

const map: Filter = (run, value, args) => {
  const attribute = args.keywords.get("attribute")
  const items = iterate(value, run)
  if (args.positional.length === 0 && attribute !== undefined) {
    const fallback = args.keywords.get("default")
    return new Generator(items.map((item) => {
      const found = attributePath(item, attribute)
      return found instanceof Undefined && fallback !== undefined ? fallback : found
    }))
  }
  const name = args.word(0, "filter")
  const applied = filter(name)
  if (applied === undefined) throw new JinjaError(`No filter named '${name}'.`)
  const inner = new Arguments(name, args.positional.slice(1), args.keywords)
  return new Generator(items.map((item) => applied(run, item, inner)))
}

const extreme = (sign: 1 | -1): Filter => (run, value, args) => {
  const items = iterate(value, run)
  const key = sortKey(args, 1, 0)
  let best = items[0]
  if (best === undefined) return new Undefined("No aggregated item, sequence was empty.")
  for (const item of items) if (compare(key(item), key(best), "<", run) * sign > 0) best = item
  return best
}

const unique: Filter = (run, value, args) => {
  const key = sortKey(args, 1, 0)
  const seen: Array<Value> = []
  return new Generator(
    iterate(value, run).filter((item) => {
      const candidate = key(item)
      if (seen.some((other) => isEqual(other, candidate, run))) return false
      seen.push(candidate)
      return true
    })
  )
}

const toInteger: Filter = (_, value, args) => {
  const fallback = orElse(args.get(0, "default"), 0)
  const base = args.integer(1, "base") ?? 10
  if (value instanceof Float) return Number.isFinite(value.value) ? integer(BigInt(Math.trunc(value.value))) : fallback
  const number = numberOf(value)
  if (number !== undefined) return number
  if (!isText(value)) return fallback
  const source = textOf(strip(value, undefined, "both")).replace(/(?<=\d)_(?=\d)/g, "")
  if (base === 10 && /^[-+]?\d+$/.test(source)) return integer(BigInt(source.replace(/^\+/, "")))
  if (base === 10) {
    const float = Number(source)
    return source !== "" && /^[-+\d.]/.test(source) && !/^[-+]?0[xob]/i.test(source) && Number.isFinite(float)
      ? integer(BigInt(Math.trunc(float)))
      : fallback
  }
  const parsed = /^[-+]?[0-9a-z]+$/i.test(source) ? Number.parseInt(source, base) : Number.NaN
  return Number.isNaN(parsed) ? fallback : integer(parsed)
}

const toFloat: Filter = (_, value, args) => {
  const fallback = orElse(args.get(0, "default"), new Float(0))
  const number = numberOf(value)
  if (number !== undefined) return new Float(Number(number))
  if (!isText(value)) return fallback
  const source = textOf(strip(value, undefined, "both"))
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(source) ? new Float(Number(source)) : fallback
}

/** Rounds half to even in decimal, as Python does for the value that a float really has. */
const roundHalfEven = (value: number, digits: number): number => {
  const factor = 10 ** digits
  const scaled = value * factor
  if (digits === 0 && Math.abs(scaled % 1) === 0.5) return 2 * Math.round(scaled / 2)
  return digits >= 0 && digits <= 100 ? Number(value.toFixed(digits)) : Math.round(scaled) / factor
}

const round: Filter = (_, value, args) => {
  const number = numberOf(value)
  if (number === undefined) {
    throw value instanceof Undefined
      ? undefinedError(value)
      : new JinjaError(`round needs a number, not ${typeName(value)}`)
  }
  const digits = args.integer(0, "precision") ?? 0
  const method = args.get(1, "method") === undefined ? "common" : args.word(1, "method")
  const factor = 10 ** digits
  if (method === "ceil") return new Float(Math.ceil(Number(number) * factor) / factor)
  if (method === "floor") return new Float(Math.floor(Number(number) * factor) / factor)
  if (method !== "common") throw new JinjaError("method must be common, ceil or floor")
  return value instanceof Float
    ? new Float(roundHalfEven(value.value, digits))
    : digits >= 0
    ? number
    : integer(roundHalfEven(Number(number), digits))
}

const indent: Filter = (run, value, args) => {
  const text = stringOf(value, run)
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

const joinFilter: Filter = (run, value, args) => {
  const attribute = args.get(1, "attribute")
  const separator = args.text(0, "d") ?? ""
  const pieces = iterate(value, run).map((item) => {
    const piece = stringOf(attribute === undefined || attribute === null ? item : attributePath(item, attribute), run)
    run.produce(textOf(piece).length + textOf(separator).length)
    return piece
  })
  return join(pieces, separator)
}

const toJson: Filter = (run, value, args) => {
  const indentation = args.get(1, "indent") ?? null
  const separators = args.get(2, "separators") ?? null
  const [itemSeparator, keySeparator] = separators === null
    ? [indentation === null ? ", " : ",", ": "]
    : iterate(separators, run).map((separator) => textOf(stringOf(separator, run)))
  return writeJson(value, {
    ensureAscii: isTrue(args.get(0, "ensure_ascii") ?? false),
    indent: indentation === null
      ? undefined
      : isText(indentation)
      ? textOf(indentation)
      : " ".repeat(Math.max(0, Math.min(args.integer(1, "indent") ?? 0, 100))),
    itemSeparator: itemSeparator ?? ", ",
    keySeparator: keySeparator ?? ": ",
    sortKeys: isTrue(args.get(3, "sort_keys") ?? false)
  }, run)
}

const batch: Filter = (run, value, args) => {
  const count = args.integer(0, "linecount") ?? 0
  const fill = args.get(1, "fill_with")
  if (count < 1) throw new JinjaError("batch needs a positive count")
  const rows: Array<Array<Value>> = []
  for (const item of iterate(value, run)) {
    const row = rows.at(-1)
    if (row === undefined || row.length === count) rows.push([item])
    else row.push(item)
  }
  const last = rows.at(-1)
  if (fill !== undefined && fill !== null && last !== undefined) {
    run.step(count)
    while (last.length < count) last.push(fill)
  }
  return new Generator(rows)
}

const groupBy: Filter = (run, value, args) => {
  const attribute = args.required(0, "attribute")
  const fallback = args.get(1, "default")
  const key = (item: Value): Value => {
    const found = attributePath(item, attribute)
    return found instanceof Undefined && fallback !== undefined ? fallback : found
  }
  const groups: Array<{ readonly key: Value; readonly items: Array<Value> }> = []
  for (const item of sorted(iterate(value, run), (each) => folded(key(each), false), false, run)) {
    const last = groups.at(-1)
    if (last !== undefined && isEqual(folded(last.key, false), folded(key(item), false), run)) last.items.push(item)
    else groups.push({ key: key(item), items: [item] })
  }
  return groups.map((each) => new Tuple([each.key, each.items]))
}

const reverse: Filter = (run, value) => {
  if (isText(value)) return join(Array.from(iterate(value, run), (c) => isText(c) ? c : "").toReversed(), "")
  if (value instanceof Undefined) throw undefinedError(value)
  return new Generator(iterate(value, run).toReversed())
}

const truncate: Filter = (run, value, args) => {
  const text = stringOf(value, run)
  const length = args.integer(0, "length") ?? 255
  const killWords = isTrue(args.get(1, "killwords") ?? false)
  const end = args.text(2, "end") ?? "..."
  const leeway = args.integer(3, "leeway") ?? 5
  if (lengthOf(text) <= length + leeway) return text
  const kept = subscriptRange(text, length - lengthOf(end), run)
  return concat(killWords ? kept : slice(kept, 0, Math.max(0, textOf(kept).lastIndexOf(" ")) || textOf(kept).length), end)
}

const subscriptRange = (text: Text, count: number, run: Run): Text =>
  join(iterate(text, run).slice(0, Math.max(0, count)).map((c) => isText(c) ? c : ""), "")

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", "\"": "&#34;" }

const escape: Filter = (run, value) =>
  mapText(stringOf(value, run), (stretch) => stretch.replace(/[&<>'"]/g, (character) => escapes[character] ?? character))

const quoteUrl = (stretch: string): string =>
  encodeURIComponent(stretch.toWellFormed()).replaceAll("%2F", "/").replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`
  )

const defaultFilter: Filter = (_, value, args) => {
  if (!(value instanceof Undefined) && !(isTrue(args.get(1, "boolean") ?? false) && !isTrue(value))) return value
  return orElse(args.get(0, "default_value"), "")
}

const onText = (change: (stretch: string) => string): Filter => (run, value) => mapText(stringOf(value, run), change)

const titleWords = (stretch: string): string =>
  stretch.replace(/[^-\s({[<]+/g, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())

const length: Filter = (_, value) => lengthOf(value)

const filters: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["abs", (_, value) => value instanceof Float ? new Float(Math.abs(value.value)) : (numberOf(value) ?? -1) < 0 ? negate(value) : value],
  ["attr", (_, value, args) => subscript(value, args.required(0, "name"))],
  ["batch", batch],
  ["capitalize", (run, value) => capitalize(stringOf(value, run))],
  ["count", length],
  ["d", defaultFilter],
  ["default", defaultFilter],
  ["dictsort", dictSort],
  ["e", escape],
  ["escape", escape],
  [
    "first",
    (run, value) =>
      orElse(value instanceof Generator ? value.next() : iterate(value, run)[0], new Undefined("No first item, sequence was empty."))
  ],
  ["float", toFloat],
  [
    "format",
    (run, value, args) =>
      percentFormat(stringOf(value, run), args.keywords.size > 0 ? new Dict(new Map(args.keywords)) : new Tuple(args.positional), run)
  ],
  // llama.cpp's own, not Python's
  ["from_json", (run, value) => {
    const text = stringOf(value, run)
    return readJson(textOf(text), typeof text !== "string")
  }],
  ["groupby", groupBy],
  ["indent", indent],
  ["int", toInteger],
  ["items", (_, value) => {
    if (value instanceof Undefined) return new Generator([])
    if (!(value instanceof Dict)) throw new JinjaError("Can only get item pairs from a mapping.")
    return new Generator(value.items())
  }],
  ["join", joinFilter],
  ["last", (run, value) => orElse(iterate(value, run).at(-1), new Undefined("No last item, sequence was empty."))],
  ["length", length],
  ["list", (run, value) => Array.from(iterate(value, run))],
  ["lower", onText((stretch) => stretch.toLowerCase())],
  ["map", map],
  ["max", extreme(1)],
  ["min", extreme(-1)],
  ["reject", select(false, false)],
  ["rejectattr", select(false, true)],
  [
    "replace",
    (run, value, args) =>
      replace(
        run,
        stringOf(value, run),
        stringOf(args.required(0, "old"), run),
        stringOf(args.required(1, "new"), run),
        args.integer(2, "count") ?? -1
      )
  ],
  ["reverse", reverse],
  ["round", round],
  ["safe", (run, value) => stringOf(value, run)],
  ["select", select(true, false)],
  ["selectattr", select(true, true)],
  ["sort", (run, value, args) => sorted(iterate(value, run), sortKey(args, 2, 1), isTrue(args.get(0, "reverse") ?? false), run)],
  ["string", (run, value) => stringOf(value, run)],
  ["sum", (run, value, args) => {
    const attribute = args.get(0, "attribute")
    return iterate(value, run).reduce<Value>(
      (total, item) => add(total, attribute === undefined || attribute === null ? item : attributePath(item, attribute), run),
      args.get(1, "start") ?? 0
    )
  }],
  ["title", onText(titleWords)],
  ["tojson", toJson],
  ["trim", (run, value, args) => strip(stringOf(value, run), args.text(0, "chars"), "both")],
  ["truncate", truncate],
  ["unique", unique],
  ["upper", onText((stretch) => stretch.toUpperCase())],
  ["urlencode", (run, value) => mapText(stringOf(value, run), quoteUrl)],
  ["wordcount", (run, value) => textOf(stringOf(value, run)).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0]
])

/** A filter by its name in a template. */
export const filter = (name: string): Filter | undefined => {
  const found = filters.get(name)
  return found === undefined ? undefined : (run, value, args) => {
    run.step(isText(value) ? 1 + (textOf(value).length >> 6) : 1)
    return found(run, value, args)
  }
}
