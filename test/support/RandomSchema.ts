import type { Schema } from "./SchemaOracle.ts"

type Draw = () => number

const one = <A>(next: Draw, list: ReadonlyArray<A>): A => {
  const found = list[Math.floor(next() * list.length)]
  if (found === undefined) throw new Error("a list of nothing")
  return found
}

const integer = (next: Draw, from: number, to: number): number => from + Math.floor(next() * (to - from + 1))

const maybe = <A>(next: Draw, chance: number, made: () => A): ReadonlyArray<A> => next() < chance ? [made()] : []

const names = ["a", "b", "name", "x-y", "\"q\"", "é", "__proto__", "items", "0"]

const patterns = ["^a", "b$", "^[a-z]*$", "\\d", "^(?:ab|c)+$", "^.{1,3}$", "[^x]", "^(?!b).*$", "\\s?x", "^\\S+@\\S+$"]

const constants: ReadonlyArray<unknown> = [null, true, false, 0, 1, -3, 2.5, "", "a", "b\n\"", "é", [], [1, "a"], {}, { a: 1 }]

const scalar = (next: Draw): Schema => {
  switch (integer(next, 0, 7)) {
    case 0:
      return {
        type: "integer",
        ...range(next, 1),
        ...Object.assign({}, ...maybe(next, 0.3, () => ({ multipleOf: one(next, [2, 3, 5, 10, 12]) })))
      }
    case 1:
      return { type: "number", ...range(next, 0.25) }
    case 2:
    case 3:
      return {
        type: "string",
        ...Object.assign({}, ...maybe(next, 0.4, () => ({ minLength: integer(next, 0, 3) }))),
        ...Object.assign({}, ...maybe(next, 0.4, () => ({ maxLength: integer(next, 3, 8) }))),
        ...Object.assign({}, ...maybe(next, 0.4, () => ({ pattern: one(next, patterns) })))
      }
    case 4:
      return { enum: Array.from({ length: integer(next, 1, 5) }, () => one(next, constants)) }
    case 5:
      return { const: one(next, constants) }
    case 6:
      return { type: one(next, ["boolean", "null", "string"]) }
    default:
      return one(next, [true, {}, { type: ["integer", "null"], minimum: 3 }, { type: "string", nullable: true }])
  }
}

const range = (next: Draw, unit: number): Record<string, number> => {
  const low = integer(next, -200, 200) * unit
  const high = low + integer(next, 0, 400) * unit
  return Object.assign(
    {},
    ...maybe(next, 0.5, () => ({ [one(next, ["minimum", "exclusiveMinimum"])]: low })),
    ...maybe(next, 0.5, () => ({ [one(next, ["maximum", "exclusiveMaximum"])]: high + 2 * unit }))
  )
}

/** A random schema of the keywords that are enforced; some allow nothing, and some cannot be enforced. */
export const randomSchema = (next: Draw, depth = 3): Schema => {
  if (depth === 0 || next() < 0.25) return scalar(next)
  const inner = () => randomSchema(next, depth - 1)
  const properties = () => Object.fromEntries(Array.from({ length: integer(next, 0, 4) }, () => [one(next, names), inner()]))
  switch (integer(next, 0, 11)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const own = properties()
      return {
        type: "object",
        properties: own,
        required: Object.keys(own).filter(() => next() < 0.5),
        ...Object.assign({}, ...maybe(next, 0.6, () => ({ additionalProperties: one(next, [false, false, inner()]) }))),
        ...Object.assign({}, ...maybe(next, 0.15, () => ({ patternProperties: { [one(next, patterns)]: inner() } }))),
        ...Object.assign({}, ...maybe(next, 0.1, () => ({ propertyNames: { pattern: "^[^0]" } }))),
        ...Object.assign({}, ...maybe(next, 0.1, () => ({ maxProperties: integer(next, 0, 4) }))),
        ...Object.assign({}, ...maybe(next, 0.1, () => ({ minProperties: 1 }))),
        ...Object.assign({}, ...maybe(next, 0.05, () => ({ dependentRequired: { a: ["b"] } })))
      }
    }
    case 4:
    case 5:
      return {
        type: "array",
        items: inner(),
        ...Object.assign({}, ...maybe(next, 0.4, () => ({ minItems: integer(next, 0, 2) }))),
        ...Object.assign({}, ...maybe(next, 0.4, () => ({ maxItems: integer(next, 2, 4) }))),
        ...Object.assign({}, ...maybe(next, 0.15, () => ({ contains: scalar(next) })))
      }
    case 6:
      return { type: "array", prefixItems: [inner(), inner()], items: one(next, [false, inner()]), minItems: integer(next, 0, 3) }
    case 7:
      return { anyOf: [inner(), inner()] }
    case 8:
      return { oneOf: [inner(), inner()] }
    case 9:
      return { allOf: [inner(), inner()] }
    case 10:
      return { allOf: [inner()], not: scalar(next) }
    default:
      return { type: "array", items: { enum: ["a", 1, null] }, uniqueItems: true }
  }
}

/** A random JSON value, often one of those that the schemas above are about. */
export const randomValue = (next: Draw, depth = 2): unknown => {
  if (depth === 0 || next() < 0.6) {
    return next() < 0.5
      ? one(next, constants)
      : next() < 0.5
      ? integer(next, -250, 250)
      : one(next, ["ab", "c1", " \"", "abab", "x@y", "é"])
  }
  if (next() < 0.4) return Array.from({ length: integer(next, 0, 3) }, () => randomValue(next, depth - 1))
  return Object.fromEntries(Array.from({ length: integer(next, 0, 3) }, () => [one(next, names), randomValue(next, depth - 1)]))
}
