import type { CallOutput } from "./CallScanner.ts"
import { isSpace, JsonScanner } from "./JsonScanner.ts"
import { jsonUnit, parseJson } from "./Text.ts"

/** The object that a JSON string holds, as JSON text; a blank string counts as an empty one. */
const objectInString = (json: string): string | undefined => {
  const text = parseJson(json)
  if (typeof text !== "string") return undefined
  if (text.trim() === "") return "{}"
  const value = parseJson(text)
  return typeof value === "object" && value !== null && !Array.isArray(value) ? text : undefined
}

/**
 * Reads one JSON object that is a call's arguments, from its brace on. Control characters in its strings are escaped, since a client could
 * not read them.
 */
export class JsonObject {
  readonly #scanner = new JsonScanner()
  readonly #output: CallOutput

  constructor(output: CallOutput) {
    this.#output = output
  }

  /** It is an object for good: something of it has come, or it is over. */
  get certain(): boolean {
    return this.done || this.#scanner.depth > 1 || (this.#scanner.depth === 1 && !this.#scanner.inEmptyObject)
  }

  /** Nothing has come. */
  get empty(): boolean {
    return this.#scanner.depth === 0 && this.#scanner.beforeValue
  }

  get done(): boolean {
    return this.#scanner.depth === 0 && this.#scanner.afterValue
  }

  /** Takes a character; false where no object goes on like this, which takes nothing. */
  step(unit: string): boolean {
    const { depth, inString } = this.#scanner
    if ((depth === 0 && unit !== "{") || !this.#scanner.step(unit)) return false
    this.#output.argument(inString ? escapedControl(unit) : unit)
    return true
  }
}

/** Of a JSON string that is read: only control characters are not as they have to be. */
export const escapedControl = (unit: string): string => unit < " " ? jsonUnit(unit) : unit

export interface JsonCallOptions {
  /** Keys that the arguments may stand under. */
  readonly argumentKeys: ReadonlyArray<string>
  /** Names that make a call; absent: any. */
  readonly offered?: ReadonlySet<string>
  /** There are no markers: an object without arguments, or with keys or values that calls do not have, is no call. Default false. */
  readonly bare?: boolean
}

const bareKeys: ReadonlySet<unknown> = new Set(["id", "name", "type"])

/** "ended": the call is over, though not as it should be, and the character was not taken. */
export type JsonCallVerdict = "more" | "done" | "bad" | "ended"

/** Reads one call that is a JSON object, from its brace on: a name, and arguments that are an object, a string that holds one, or absent. */
export class JsonCall {
  readonly #output: CallOutput
  readonly #options: JsonCallOptions
  readonly #scanner = new JsonScanner()
  #key = ""
  /** The key of the value that is being read, where it is one of a call's own. */
  #field: "name" | "id" | "arguments" | undefined
  #raw = ""
  #shape: "object" | "string" | "null" | undefined
  #name: string | undefined
  #id: string | undefined
  #argumentsDone = false
  #begun = false

  constructor(output: CallOutput, options: JsonCallOptions) {
    this.#output = output
    this.#options = options
  }

  step(unit: string): JsonCallVerdict {
    if (!this.#take(unit)) {
      if (!this.#begun || !this.#argumentsDone) return "bad"
      this.#output.finish(false)
      return "ended"
    }
    const done = this.#scanner.depth === 0 && this.#scanner.afterValue
    if (done && !this.#argumentsDone && this.#options.bare !== true) {
      this.#output.argument("{}")
      this.#argumentsDone = true
    }
    if (!this.#begun && this.#certain) {
      this.#begun = true
      this.#output.begin(this.#name ?? "", this.#id)
    }
    if (!done) return "more"
    if (!this.#begun) return "bad"
    this.#output.finish(true)
    return "done"
  }

  /** Whether this is a call for good: its name is known, and its arguments are complete or have begun as an object does. */
  get #certain(): boolean {
    if (this.#name === undefined) return false
    return this.#argumentsDone ||
      (this.#field === "arguments" && this.#shape === "object" && (this.#scanner.depth > 2 || !this.#scanner.inEmptyObject))
  }

  #take(unit: string): boolean {
    const scanner = this.#scanner
    const { depth, inKey, inString } = scanner
    if (depth === 0 && unit !== "{") return false
    if (depth === 1 && scanner.beforeKey) this.#key = ""
    if (depth === 1 && scanner.beforeValue && !isSpace(unit) && !this.#beginValue(unit)) return false
    if (!scanner.step(unit)) return false
    if (depth === 1 && (inKey || scanner.inKey)) this.#key += unit
    if (this.#field === "arguments" && this.#shape === "object") this.#output.argument(inString ? escapedControl(unit) : unit)
    else if (this.#field !== undefined) this.#raw += inString ? escapedControl(unit) : unit
    return this.#field === undefined || scanner.depth !== 1 || !scanner.afterValue || this.#endValue()
  }

  #beginValue(unit: string): boolean {
    const key = parseJson(this.#key)
    this.#raw = ""
    if (key === "name" && this.#name === undefined) {
      this.#field = "name"
      return unit === "\""
    }
    if (key === "id" && this.#id === undefined && unit === "\"") this.#field = "id"
    if (typeof key === "string" && this.#options.argumentKeys.includes(key) && this.#shape === undefined) {
      this.#field = "arguments"
      this.#shape = unit === "{" ? "object" : unit === "\"" ? "string" : unit === "n" && this.#options.bare !== true ? "null" : undefined
      return this.#shape !== undefined
    }
    return this.#options.bare !== true || (bareKeys.has(key) && unit === "\"")
  }

  #endValue(): boolean {
    const field = this.#field
    this.#field = undefined
    if (field === "arguments") {
      const text = this.#shape === "object" ? "" : this.#shape === "null" ? "{}" : objectInString(this.#raw)
      if (text === undefined) return false
      this.#output.argument(text)
      this.#argumentsDone = true
      return true
    }
    const value = parseJson(this.#raw)
    if (typeof value !== "string" || value === "") return field === "id"
    if (field === "id") this.#id = value
    else this.#name = value
    return field === "id" || this.#options.offered === undefined || this.#options.offered.has(value)
  }
}
