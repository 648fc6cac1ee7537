import { Arguments } from "./Arguments.ts"
import { attributePath, subscript } from "./Attributes.ts"
import { type Filter, orElse } from "./Filter.ts"
import { percentFormat } from "./Formatting.ts"
import { readJson, writeJson } from "./Json.ts"
import { isText, mapText, textOf } from "./MarkedText.ts"
import { absolute, round, toFloat, toInteger } from "./NumberFilters.ts"
import { add } from "./Operators.ts"
import { iterate } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import { batch, dictSort, extreme, groupBy, itemsOf, reverse, select, sort, unique } from "./SequenceFilters.ts"
import { capitalize, justify, replace, strip } from "./StringMethods.ts"
import { escape, indent, joinFilter, quoteUrl, titleWords, truncate } from "./TextFilters.ts"
import { Dict, Generator, isTrue, JinjaError, lengthOf, Tuple, Undefined, type Value } from "./Values.ts"

const map: Filter = (run, value, args) => {
  const attribute = args.keywords.get("attribute")
  const items = itemsOf(value, run)
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

const defaultFilter: Filter = (_, value, args) => {
  if (!(value instanceof Undefined) && !(isTrue(args.get(1, "boolean") ?? false) && !isTrue(value))) return value
  return orElse(args.get(0, "default_value"), "")
}

const onText = (change: (stretch: string) => string): Filter => (run, value) => mapText(stringOf(value, run), change)

const length: Filter = (_, value) => lengthOf(value)

const filters: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["abs", absolute],
  ["attr", (_, value, args) => subscript(value, args.required(0, "name"))],
  ["batch", batch],
  ["capitalize", (run, value) => capitalize(stringOf(value, run))],
  ["center", (run, value, args) => justify(run, stringOf(value, run), args.integer(0, "width") ?? 80, " ", "center")],
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
  ["sort", sort],
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
