import { isText, type Text, textOf } from "./MarkedText.ts"
import { Float, JinjaError, type Keywords, typeName, Undefined, undefinedError, type Value } from "./Values.ts"

/** Arguments of a builtin: by position or by name. */
export class Arguments {
  readonly #name: string
  readonly positional: ReadonlyArray<Value>
  readonly keywords: Keywords
  constructor(name: string, positional: ReadonlyArray<Value>, keywords: Keywords) {
    this.#name = name
    this.positional = positional
    this.keywords = keywords
  }

  get(index: number, name: string): Value | undefined {
    return this.positional[index] ?? (this.positional.length > index ? null : this.keywords.get(name))
  }

  required(index: number, name: string): Value {
    const value = this.get(index, name)
    if (value === undefined) throw new JinjaError(`${this.#name}() missing 1 required argument: '${name}'`)
    return value
  }

  /** A text argument; undefined when absent or None. */
  text(index: number, name: string): Text | undefined {
    const value = this.get(index, name)
    if (value === undefined || value === null) return undefined
    return this.#text(value, name)
  }

  requiredText(index: number, name: string): Text {
    return this.#text(this.required(index, name), name)
  }

  /** An integer argument; undefined when absent or None. */
  integer(index: number, name: string): number | undefined {
    const value = this.get(index, name)
    if (value === undefined || value === null) return undefined
    if (typeof value === "number") return value
    if (typeof value === "boolean") return value ? 1 : 0
    if (value instanceof Undefined) throw undefinedError(value)
    throw new JinjaError(`${this.#name}(): '${name}' must be an integer, not ${value instanceof Float ? "float" : typeName(value)}`)
  }

  /** The name of a test, filter or attribute. */
  word(index: number, name: string): string {
    return textOf(this.requiredText(index, name))
  }

  #text(value: Value, name: string): Text {
    if (isText(value)) return value
    if (value instanceof Undefined) throw undefinedError(value)
    throw new JinjaError(`${this.#name}(): '${name}' must be str, not ${typeName(value)}`)
  }
}
