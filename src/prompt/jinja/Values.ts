import { codePointLength, isText, mark, MarkedText, type Text, textOf } from "./MarkedText.ts"
import type { Run } from "./Run.ts"

/** The template did something that Python's Jinja refuses, or used up what one render may use. */
export class JinjaError extends Error {}

/** A Python `float`; a plain number is an `int`, a bigint an `int` beyond 2^53. */
export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

export class Tuple {
  readonly items: ReadonlyArray<Value>
  constructor(items: ReadonlyArray<Value>) {
    this.items = items
  }
}

/** The result of a missing variable or key; `hint` is the message of the error that using it raises. */
export class Undefined {
  readonly hint: string
  constructor(hint: string) {
    this.hint = hint
  }
}

export type Key = string | number | bigint | boolean | null

/** A Python `dict` with keys in insertion order. Keys that came from a user come out marked. */
export class Dict {
  readonly entries: Map<Key, Value>
  #markedKeys: boolean
  constructor(entries: Map<Key, Value> = new Map(), markedKeys = false) {
    this.entries = entries
    this.#markedKeys = markedKeys
  }
  get(key: Key): Value | undefined {
    return this.entries.get(key)
  }
  set(key: Value, value: Value): void {
    if (key instanceof MarkedText) this.#markedKeys = true
    this.entries.set(keyOf(key), value)
  }
  keys(): Array<Value> {
    return Array.from(this.entries.keys(), (key) => this.#markedKeys && typeof key === "string" ? mark(key) : key)
  }
  values(): Array<Value> {
    return Array.from(this.entries.values())
  }
  items(): Array<Tuple> {
    return this.keys().map((key) => new Tuple([key, this.entries.get(keyOf(key)) ?? null]))
  }
  copy(): Dict {
    return new Dict(new Map(this.entries), this.#markedKeys)
  }
}

export class Namespace {
  readonly entries = new Map<string, Value>()
}

/** What `map`, `select` and their like give: always true, without a length, empty after one iteration. */
export class Generator {
  #items: Array<Value>
  #taken = 0
  constructor(items: Array<Value>) {
    this.#items = items
  }
  take(): Array<Value> {
    const items = this.#taken === 0 ? this.#items : this.#items.slice(this.#taken)
    this.#items = []
    this.#taken = 0
    return items
  }
  next(): Value | undefined {
    return this.#items[this.#taken++]
  }
}

/** `dict.keys()`, `.values()` and `.items()`. */
export class View {
  readonly kind: "dict_keys" | "dict_values" | "dict_items"
  readonly items: Array<Value>
  constructor(kind: View["kind"], items: Array<Value>) {
    this.kind = kind
    this.items = items
  }
}

export type Keywords = ReadonlyMap<string, Value>
export type Invoke = (run: Run, args: ReadonlyArray<Value>, keywords: Keywords) => Value

export class Callable {
  readonly name: string
  readonly invoke: Invoke
  /** Attributes beside the call, of `loop`. */
  readonly attribute: ((name: string) => Value | undefined) | undefined
  constructor(name: string, invoke: Invoke, attribute?: (name: string) => Value | undefined) {
    this.name = name
    this.invoke = invoke
    this.attribute = attribute
  }
}

export type Value =
  | Undefined
  | null
  | boolean
  | number
  | bigint
  | Float
  | Text
  | Array<Value>
  | Tuple
  | Dict
  | Namespace
  | Generator
  | View
  | Callable

export const typeName = (value: Value): string => {
  if (value === null) return "NoneType"
  if (isText(value)) return "str"
  if (typeof value === "boolean") return "bool"
  if (typeof value === "number" || typeof value === "bigint") return "int"
  if (value instanceof Float) return "float"
  if (Array.isArray(value)) return "list"
  if (value instanceof Tuple) return "tuple"
  if (value instanceof Dict) return "dict"
  if (value instanceof Undefined) return "Undefined"
  if (value instanceof Generator) return "generator"
  if (value instanceof View) return value.kind
  if (value instanceof Namespace) return "Namespace"
  return "function"
}

export const undefinedError = (value: Undefined): JinjaError => new JinjaError(value.hint)

export const keyOf = (value: Value): Key => {
  if (isText(value)) return textOf(value)
  if (value === null || typeof value === "boolean" || typeof value === "number" || typeof value === "bigint") return value
  if (value instanceof Float) return Number.isSafeInteger(value.value) ? value.value : `float ${value.value}`
  throw new JinjaError(`unhashable type: '${typeName(value)}'`)
}

export const isTrue = (value: Value): boolean => {
  if (value === null || value instanceof Undefined) return false
  if (typeof value === "boolean") return value
  if (typeof value === "string") return value !== ""
  if (typeof value === "number") return value !== 0
  if (typeof value === "bigint") return value !== 0n
  if (value instanceof Float) return value.value !== 0
  if (value instanceof MarkedText) return value.text !== ""
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof Tuple || value instanceof View) return value.items.length > 0
  if (value instanceof Dict) return value.entries.size > 0
  return true
}

export const lengthOf = (value: Value): number => {
  if (isText(value)) return codePointLength(textOf(value))
  if (Array.isArray(value)) return value.length
  if (value instanceof Tuple || value instanceof View) return value.items.length
  if (value instanceof Dict) return value.entries.size
  if (value instanceof Undefined) return 0
  throw new JinjaError(`object of type '${typeName(value)}' has no len()`)
}

/** An int again, as a number where it fits one exactly. */
export const integer = (value: number | bigint): number | bigint => {
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : BigInt(value)
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
}
