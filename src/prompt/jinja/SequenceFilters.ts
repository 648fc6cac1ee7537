import type { Arguments } from "./Arguments.ts"
import { attributePath, subscript } from "./Attributes.ts"
import type { Filter } from "./Filter.ts"
import { isText, join, textOf } from "./MarkedText.ts"
import { compare, isEqual, iterate } from "./PythonEquality.ts"
import type { Run } from "./Run.ts"
import { test } from "./Tests.ts"
import { Dict, Generator, isTrue, JinjaError, Tuple, typeName, Undefined, undefinedError, type Value } from "./Values.ts"

/** Filters and tests that take texts without regard to case unless asked otherwise. */
const folded = (value: Value, caseSensitive: boolean): Value => isText(value) && !caseSensitive ? textOf(value).toLowerCase() : value

const sorted = (items: ReadonlyArray<Value>, key: (item: Value) => Value, reverse: boolean, run: Run): Array<Value> => {
  const keyed = items.map((item) => ({ item, key: key(item) }))
  keyed.sort((left, right) => reverse ? compare(right.key, left.key, "<", run) : compare(left.key, right.key, "<", run))
  return keyed.map(({ item }) => item)
}

const sortKey = (args: Arguments, attributeIndex: number, caseIndex: number): (item: Value) => Value => {
  const attribute = args.get(attributeIndex, "attribute")
  const caseSensitive = isTrue(args.get(caseIndex, "case_sensitive") ?? false)
  return (item) => folded(attribute === undefined || attribute === null ? item : attributePath(item, attribute), caseSensitive)
}

/** `sort`: by several attributes when their names are parted by commas. */
export const sort: Filter = (run, value, args) => {
  const attribute = args.get(2, "attribute")
  const caseSensitive = isTrue(args.get(1, "case_sensitive") ?? false)
  const paths = isText(attribute ?? null) ? args.word(2, "attribute").split(",") : [attribute ?? null]
  const key = (item: Value): Value => paths.map((path) => folded(path === null ? item : attributePath(item, path), caseSensitive))
  return sorted(iterate(value, run), key, isTrue(args.get(0, "reverse") ?? false), run)
}

export const dictSort: Filter = (run, value, args) => {
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

/** `map`, `select` and the like take every false value for an empty list. */
export const itemsOf = (value: Value, run: Run): ReadonlyArray<Value> => isTrue(value) ? iterate(value, run) : []

export const select = (keep: boolean, byAttribute: boolean): Filter => (run, value, args) => {
  const first = byAttribute ? 1 : 0
  const name = args.positional.length > first ? args.word(first, "test") : undefined
  const found = name === undefined ? undefined : test(name)
  if (name !== undefined && found === undefined) throw new JinjaError(`No test named '${name}'.`)
  const rest = args.positional.slice(first + 1)
  const path = byAttribute ? args.required(0, "attribute") : null
  return new Generator(
    itemsOf(value, run).filter((item) => {
      run.step()
      const subject = byAttribute ? attributePath(item, path) : item
      return (found === undefined ? isTrue(subject) : found(run, subject, rest)) === keep
    })
  )
}

export const extreme = (sign: 1 | -1): Filter => (run, value, args) => {
  const items = iterate(value, run)
  const key = sortKey(args, 1, 0)
  let best = items[0]
  if (best === undefined) return new Undefined("No aggregated item, sequence was empty.")
  for (const item of items.slice(1)) if (compare(key(item), key(best), "<", run) * sign > 0) best = item
  return best
}

export const unique: Filter = (run, value, args) => {
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

export const batch: Filter = (run, value, args) => {
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

export const groupBy: Filter = (run, value, args) => {
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

export const reverse: Filter = (run, value) => {
  if (isText(value)) return join(Array.from(iterate(value, run), (c) => isText(c) ? c : "").toReversed(), "")
  return new Generator(iterate(value, run).toReversed())
}
