import { characters, isText, textOf } from "./MarkedText.ts"
import type { Run } from "./Run.ts"
import { Dict, Float, Generator, JinjaError, keyOf, Tuple, typeName, Undefined, undefinedError, type Value, View } from "./Values.ts"

/** The number behind an int, float or bool. */
export const numberOf = (value: Value): number | bigint | undefined => {
  if (typeof value === "number" || typeof value === "bigint") return value
  if (typeof value === "boolean") return value ? 1 : 0
  return value instanceof Float ? value.value : undefined
}

const sameNumber = (left: number | bigint, right: number | bigint): boolean => {
  if (typeof left === typeof right) return left === right
  const [whole, other] = typeof left === "bigint" ? [left, right] : [right, left]
  return Number.isInteger(other) && BigInt(other) === whole
}

const sameItems = (left: ReadonlyArray<Value>, right: ReadonlyArray<Value>, run: Run): boolean =>
  left.length === right.length && left.every((item, index) => isEqual(item, right[index] ?? null, run))

/** Python's `==`: deep, by type, with 1 == 1.0 == True. */
export const isEqual = (left: Value, right: Value, run: Run): boolean => {
  run.step()
  if (isText(left)) {
    if (!isText(right)) return false
    run.step(textOf(left).length >> 8)
    return textOf(left) === textOf(right)
  }
  const number = numberOf(left)
  if (number !== undefined) {
    const other = numberOf(right)
    return other !== undefined && sameNumber(number, other)
  }
  if (Array.isArray(left)) return Array.isArray(right) && sameItems(left, right, run)
  if (left instanceof Tuple) return right instanceof Tuple && sameItems(left.items, right.items, run)
  if (left instanceof Undefined) return right instanceof Undefined
  if (left instanceof Dict) {
    if (!(right instanceof Dict) || left.entries.size !== right.entries.size) return false
    for (const [key, value] of left.entries) {
      const other = right.entries.get(key)
      if (other === undefined || !isEqual(value, other, run)) return false
    }
    return true
  }
  return left === right
}

const compareText = (left: string, right: string): number => {
  const length = Math.min(left.length, right.length)
  for (let i = 0; i < length; i++) {
    if (left.charCodeAt(i) === right.charCodeAt(i)) continue
    const a = left.codePointAt(i) ?? 0
    const b = right.codePointAt(i) ?? 0
    return a === b ? 0 : a < b ? -1 : 1
  }
  return left.length - right.length
}

/** Order of two values that Python can order: numbers, texts by code point, lists and tuples. `operator` is for the error. */
export const compare = (left: Value, right: Value, operator: string, run: Run): number => {
  run.step()
  if (isText(left) && isText(right)) {
    run.step(textOf(left).length >> 6)
    return compareText(textOf(left), textOf(right))
  }
  const a = numberOf(left)
  const b = numberOf(right)
  if (a !== undefined && b !== undefined) return a < b ? -1 : a > b ? 1 : a >= b ? 0 : Number.NaN
  const items = Array.isArray(left) && Array.isArray(right)
    ? [left, right] as const
    : left instanceof Tuple && right instanceof Tuple
    ? [left.items, right.items] as const
    : undefined
  if (items === undefined) {
    if (left instanceof Undefined) throw undefinedError(left)
    if (right instanceof Undefined) throw undefinedError(right)
    throw new JinjaError(`'${operator}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`)
  }
  const length = Math.min(items[0].length, items[1].length)
  for (let i = 0; i < length; i++) {
    const one = items[0][i] ?? null
    const other = items[1][i] ?? null
    if (!isEqual(one, other, run)) return compare(one, other, operator, run)
  }
  return items[0].length - items[1].length
}

/** Python's `in`. */
export const contains = (container: Value, item: Value, run: Run): boolean => {
  if (isText(container)) {
    if (item instanceof Undefined) throw undefinedError(item)
    if (!isText(item)) throw new JinjaError(`'in <string>' requires string as left operand, not ${typeName(item)}`)
    return run.find(container, item) >= 0
  }
  if (container instanceof Dict && item instanceof Undefined) return false
  if (container instanceof Dict) return container.entries.has(keyOf(item))
  return iterate(container, run).some((candidate) => isEqual(candidate, item, run))
}

/** The items a `for` loop sees. */
export const iterate = (value: Value, run: Run): ReadonlyArray<Value> => {
  if (Array.isArray(value)) {
    run.step(value.length)
    return value
  }
  if (value instanceof Undefined) return []
  if (value instanceof Tuple || value instanceof View) {
    run.step(value.items.length)
    return value.items
  }
  if (value instanceof Dict) {
    run.step(value.entries.size)
    return value.keys()
  }
  if (value instanceof Generator) return value.take()
  if (isText(value)) {
    run.step(textOf(value).length)
    return characters(value)
  }
  throw new JinjaError(`'${typeName(value)}' object is not iterable`)
}
