/** What compiling a value may cost, as far as a look at it tells. */
export type Weight = "light" | "heavy" | "tooLarge"

/** JSON values, and UTF-16 units of their texts, that one request's schemas and grammars may have together. */
const mostValues = 100_000
const mostUnits = 2_000_000

/** Levels of nesting: far above what compiles, below what JSON's own functions cannot take. */
const deepest = 2000

/** Values up to which schemas without a costly keyword compile in about two milliseconds. */
const lightValues = 64

/** Units of text that a look at takes no time worth a thread. */
const lightUnits = 32 * 1024

/** A count above this makes more than its size shows. */
const lightCount = 64

/** Keywords whose cost has little to do with their size. */
const costly = new Set([
  "$dynamicRef",
  "$recursiveRef",
  "$ref",
  "allOf",
  "contains",
  "dependencies",
  "dependentSchemas",
  "extends",
  "if",
  "multipleOf",
  "not",
  "oneOf",
  "patternProperties",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties"
])

const counts = new Set(["maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"])

/** Weighs the schemas and grammars of one request: linear in their size, without recursion, and over once there is too much of them. */
export class Scale {
  #values = 0
  #units = 0
  #costly = false

  get heavy(): boolean {
    return this.#costly || this.#values > lightValues || this.#units > lightUnits
  }

  /** A text that is itself a regular expression or a grammar. */
  addProgram(text: string): Weight {
    this.#costly = true
    return this.add(text)
  }

  /** The weight of everything so far, this JSON value included. */
  add(root: unknown): Weight {
    const pending: Array<unknown> = [root]
    const levels = [0]
    while (pending.length > 0) {
      const value = pending.pop()
      const level = levels.pop() ?? 0
      if (++this.#values > mostValues || level > deepest) return "tooLarge"
      if (typeof value === "string") this.#units += value.length
      else if (Array.isArray(value)) {
        if (this.#values + value.length > mostValues) return "tooLarge"
        for (const item of value) {
          pending.push(item)
          levels.push(level + 1)
        }
      } else if (typeof value === "object" && value !== null) {
        for (const key of Object.keys(value)) {
          const own: unknown = Reflect.get(value, key)
          this.#units += key.length
          this.#costly ||= isCostly(key, own)
          pending.push(own)
          levels.push(level + 1)
        }
      } // Larger than a double is no JSON that another thread could be sent.
      else if (value === Infinity || value === -Infinity) return "tooLarge"
      if (this.#units > mostUnits || this.#values + pending.length > mostValues) return "tooLarge"
    }
    return this.heavy ? "heavy" : "light"
  }
}

const isCostly = (key: string, value: unknown): boolean =>
  costly.has(key) || ((key === "pattern" || key === "format") && typeof value === "string") ||
  (counts.has(key) && typeof value === "number" && value > lightCount)
