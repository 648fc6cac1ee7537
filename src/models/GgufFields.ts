import { modelError } from "./GgufCursor.ts"
import type { GgufValue } from "./GgufHeader.ts"

/** Typed reads of metadata keys: undefined where a key is absent, `ModelError` naming the key where its type is another. */
export class GgufFields {
  readonly #values: ReadonlyMap<string, GgufValue>

  constructor(values: ReadonlyMap<string, GgufValue>) {
    this.#values = values
  }

  hasPrefix(prefix: string): boolean {
    return this.#values.keys().some((key) => key.startsWith(prefix))
  }

  string(key: string): string | undefined {
    const value = this.#values.get(key)
    return value === undefined || typeof value === "string" ? value : wrongType(key, "a string")
  }

  boolean(key: string): boolean | undefined {
    const value = this.#values.get(key)
    return value === undefined || typeof value === "boolean" ? value : wrongType(key, "true or false")
  }

  integer(key: string): number | undefined {
    const value = this.#values.get(key)
    return value === undefined || (typeof value === "number" && Number.isSafeInteger(value)) ? value : wrongType(key, "an integer")
  }

  number(key: string): number | undefined {
    const value = this.#values.get(key)
    return value === undefined || typeof value === "number" ? value : wrongType(key, "a number")
  }

  strings(key: string): ReadonlyArray<string> | undefined {
    const value = this.#values.get(key)
    return value === undefined || isStrings(value) ? value : wrongType(key, "an array of strings")
  }

  integers(key: string): Int32Array | undefined {
    const value = this.#values.get(key)
    return value === undefined || value instanceof Int32Array ? value : wrongType(key, "an array of integers")
  }

  floats(key: string): Float32Array | undefined {
    const value = this.#values.get(key)
    return value === undefined || value instanceof Float32Array ? value : wrongType(key, "an array of numbers")
  }
}

export const requireField = <A>(key: string, value: A | undefined): A => {
  if (value === undefined) throw modelError("Invalid", `${key}: the key is missing`, key)
  return value
}

const isStrings = (value: GgufValue): value is ReadonlyArray<string> => Array.isArray(value)

const wrongType = (key: string, wanted: string): never => {
  throw modelError("Invalid", `${key}: not ${wanted}`, key)
}
