import { Arguments } from "./Arguments.ts"
import { codePointLength, isText, join, offsetOfCodePoint, slice, type Text, textOf } from "./MarkedText.ts"
import { isEqual, iterate } from "./PythonEquality.ts"
import type { Run } from "./Run.ts"
import { stringMethod } from "./StringMethods.ts"
import { Callable, Dict, Float, JinjaError, Namespace, Tuple, typeName, Undefined, undefinedError, type Value, View } from "./Values.ts"

/** `value`, which may be None, or the other where there is none. */
const present = (value: Value | undefined, other: () => Value): Value => value === undefined ? other() : value

type Method = (run: Run, args: Arguments) => Value

/** Methods that change their object; Jinja's sandbox refuses them. */
const unsafe: Readonly<Record<string, ReadonlySet<string>>> = {
  dict: new Set(["clear", "pop", "popitem", "setdefault", "update"]),
  list: new Set(["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"])
}

const counted = <A>(run: Run, items: Array<A>): Array<A> => {
  run.step(items.length)
  return items
}

const dictMethod = (dict: Dict, name: string): Method | undefined => {
  switch (name) {
    case "items":
      return (run) => new View("dict_items", counted(run, dict.items()))
    case "keys":
      return (run) => new View("dict_keys", counted(run, dict.keys()))
    case "values":
      return (run) => new View("dict_values", counted(run, dict.values()))
    case "get":
      return (_, args) => present(item(dict, args.required(0, "key")), () => args.get(1, "default") ?? null)
    case "copy":
      return (run) => {
        run.step(dict.entries.size)
        return dict.copy()
      }
    default:
      return undefined
  }
}

const sequenceMethod = (items: ReadonlyArray<Value>, name: string): Method | undefined => {
  switch (name) {
    case "count":
      return (run, args) => items.filter((candidate) => isEqual(candidate, args.required(0, "value"), run)).length
    case "index":
      return (run, args) => {
        const at = items.findIndex((candidate) => isEqual(candidate, args.required(0, "value"), run))
        if (at < 0) throw new JinjaError("value is not in list")
        return at
      }
    case "copy":
      return (run) => counted(run, Array.from(items))
    default:
      return undefined
  }
}

const method = (value: Value, name: string): Method | undefined => {
  if (isText(value)) {
    const found = stringMethod(name)
    return found === undefined ? undefined : (run, args) => found(run, value, args)
  }
  if (value instanceof Dict) return dictMethod(value, name)
  if (Array.isArray(value)) return sequenceMethod(value, name)
  if (value instanceof Tuple && name !== "copy") return sequenceMethod(value.items, name)
  return undefined
}

/** What Python's `getattr` finds: methods and the attributes of loops and namespaces, not keys. */
const own = (value: Value, name: string): Value | undefined => {
  if (value instanceof Callable) return value.attribute?.(name)
  if (value instanceof Namespace) return value.entries.get(name)
  const found = method(value, name)
  if (found !== undefined) return new Callable(name, (run, args, keywords) => found(run, new Arguments(name, args, keywords)))
  if (unsafe[typeName(value)]?.has(name) === true) {
    const hint = `access to attribute '${name}' of '${typeName(value)}' object is unsafe.`
    return new Callable(name, () => {
      throw new JinjaError(hint)
    })
  }
  return undefined
}

const at = <A>(items: ReadonlyArray<A>, index: number): A | undefined => items[index < 0 ? index + items.length : index]

/** The item under a key or index; undefined when there is none or the value has no items. */
const item = (value: Value, key: Value): Value | undefined => {
  if (value instanceof Dict) {
    if (isText(key)) return value.get(textOf(key))
    if (key === null || typeof key !== "object") return value.get(key)
    return key instanceof Float && Number.isSafeInteger(key.value) ? value.get(key.value) : undefined
  }
  const index = typeof key === "boolean" ? Number(key) : key
  if (typeof index !== "number") return undefined
  if (Array.isArray(value)) return at(value, index)
  if (value instanceof Tuple) return at(value.items, index)
  if (isText(value)) {
    const length = codePointLength(textOf(value))
    const position = index < 0 ? index + length : index
    const offset = offsetOfCodePoint(textOf(value))
    return position < 0 || position >= length ? undefined : slice(value, offset(position), offset(position + 1))
  }
  return undefined
}

const missing = (value: Value, key: Value): Undefined =>
  new Undefined(
    isText(key)
      ? `'${typeName(value)} object' has no attribute '${textOf(key)}'`
      : `'${typeName(value)} object' has no element ${typeof key === "number" ? key : typeName(key)}`
  )

/** `value.name`: an attribute, else an item. */
export const attribute = (value: Value, name: string): Value => {
  if (value instanceof Undefined) throw undefinedError(value)
  return present(own(value, name), () => present(item(value, name), () => missing(value, name)))
}

/** `value[key]`: an item, else an attribute. */
export const subscript = (value: Value, key: Value): Value => {
  if (value instanceof Undefined) throw undefinedError(value)
  return present(item(value, key), () => present(isText(key) ? own(value, textOf(key)) : undefined, () => missing(value, key)))
}

/** `value[start:stop:step]`, each bound an int or None. */
export const sliceOf = (value: Value, bounds: ReadonlyArray<Value>, run: Run): Value => {
  if (value instanceof Undefined) throw undefinedError(value)
  const [start, stop, step] = bounds.map((bound) => {
    if (bound === null) return undefined
    if (typeof bound === "number") return bound
    if (typeof bound === "boolean") return Number(bound)
    throw new JinjaError("slice indices must be integers or None")
  })
  const length = isText(value) ? codePointLength(textOf(value)) : Array.isArray(value) ? value.length : value instanceof Tuple
    ? value.items.length
    : undefined
  if (length === undefined) return new Undefined(`'${typeName(value)} object' cannot be sliced`)
  const stride = step ?? 1
  if (stride === 0) throw new JinjaError("slice step cannot be zero")
  const lowest = stride > 0 ? 0 : -1
  const clamp = (bound: number) => Math.max(lowest, Math.min(bound < 0 ? bound + length : bound, length + lowest))
  const from = start === undefined ? (stride > 0 ? 0 : length - 1) : clamp(start)
  const to = stop === undefined ? (stride > 0 ? length : -1) : clamp(stop)
  if (isText(value)) return sliceText(value, from, to, stride, run)
  const items = Array.isArray(value) ? value : value instanceof Tuple ? value.items : []
  const picked: Array<Value> = []
  for (let i = from; stride > 0 ? i < to : i > to; i += stride) picked.push(items[i] ?? null)
  run.step(picked.length)
  return Array.isArray(value) ? picked : new Tuple(picked)
}

const sliceText = (text: Text, from: number, to: number, stride: number, run: Run): Text => {
  run.step(textOf(text).length >> 6)
  const offset = offsetOfCodePoint(textOf(text))
  if (stride === 1) return slice(text, offset(from), offset(Math.max(from, to)))
  const picked: Array<Text> = []
  for (let i = from; stride > 0 ? i < to : i > to; i += stride) picked.push(slice(text, offset(i), offset(i + 1)))
  run.step(picked.length)
  return join(picked, "")
}

/** An attribute path as `map`, `sort` and `selectattr` take it: names and indices between dots. */
export const attributePath = (value: Value, path: Value): Value => {
  if (typeof path === "number") return subscript(value, path)
  if (!isText(path)) throw new JinjaError(`an attribute is named by text, not ${typeName(path)}`)
  let current = value
  for (const part of textOf(path).split(".")) {
    // Jinja looks the parts of a path up as items first
    current = subscript(current, /^\d+$/.test(part) ? Number(part) : part)
  }
  return current
}

/** Spreads an iterable over several targets; `count` of them must be there. */
export const unpack = (value: Value, count: number, run: Run): ReadonlyArray<Value> => {
  if (value instanceof Undefined) throw undefinedError(value)
  const items = iterate(value, run)
  if (items.length < count) throw new JinjaError(`not enough values to unpack (expected ${count}, got ${items.length})`)
  if (items.length > count) throw new JinjaError(`too many values to unpack (expected ${count})`)
  return items
}
