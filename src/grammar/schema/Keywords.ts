import type { Bound, Multiple } from "../DecimalText.ts"
import { decimalOf } from "../DecimalText.ts"
import { integers } from "../IntegerText.ts"
import * as Pattern from "../Pattern.ts"
import type * as Regular from "../Regular.ts"
import { integerFormat, stringFormat, stringFormats } from "../StringFormats.ts"
import {
  type ArrayCase,
  type Case,
  integerMultiple,
  type NumberCase,
  type ObjectCase,
  reduced,
  stricter,
  type StringCase
} from "./SchemaCase.ts"
import { fail, isObject, type Place, type SchemaDocument } from "./SchemaDocument.ts"

type Raw = Readonly<Record<string, unknown>>

const typeNames = ["null", "boolean", "number", "integer", "string", "array", "object"] as const
type TypeName = (typeof typeNames)[number]

const isTypeName = (name: unknown): name is TypeName => typeNames.some((known) => known === name)

/** Keywords that no grammar here says, by what is said instead. */
const refused: Readonly<Record<string, string>> = {
  $dynamicRef: "cannot be enforced",
  $recursiveRef: "cannot be enforced",
  minContains: "can be enforced only where it is 0 or 1",
  maxContains: "cannot be enforced"
}

/** In-place applicators: what they evaluate, an `unevaluated…` keyword beside them would have to know. */
const applicators = ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies"]

/** Larger than anything that is ever generated: as an upper limit, it is none. */
const mostCount = 1_000_000_000

/** Reads what one schema itself says, its applicators aside. */
export class Keywords {
  readonly #document: SchemaDocument
  readonly #patterns = new Map<string, Regular.Regular>()

  constructor(document: SchemaDocument) {
    this.#document = document
  }

  /** A case for each type that the schema allows. */
  cases(place: Place, schema: Raw): ReadonlyArray<Case> {
    for (const [keyword, why] of Object.entries(refused)) {
      if (schema[keyword] === undefined) continue
      if (keyword === "minContains" && (schema[keyword] === 0 || schema[keyword] === 1)) continue
      fail("Unsupported", place, [keyword], why)
    }
    const types = this.#types(place, schema)
    const has = (type: TypeName) => types === undefined || types.has(type)
    const constants: Array<unknown> = [...(has("null") ? [null] : []), ...(has("boolean") ? [false, true] : [])]
    return [
      ...(has("object") ? [this.#object(place, schema)] : []),
      ...(has("array") ? [this.#array(place, schema)] : []),
      ...(has("string") ? [this.#string(place, schema, types !== undefined)] : []),
      ...(has("number") || has("integer") ? [this.#number(place, schema, !has("number"))] : []),
      ...(constants.length === 0 ? [] : [{ type: "values" as const, values: constants }])
    ]
  }

  #types(place: Place, schema: Raw): ReadonlySet<TypeName> | undefined {
    if (schema.type === undefined) return undefined
    const names: ReadonlyArray<unknown> = Array.isArray(schema.type) ? schema.type : [schema.type]
    const types = new Set<TypeName>()
    for (const name of names) {
      types.add(isTypeName(name) ? name : fail("Invalid", place, ["type"], `a type is one of ${typeNames.join(", ")}`))
    }
    if (schema.nullable === true) types.add("null")
    return types
  }

  #count(place: Place, schema: Raw, keyword: string, absent: number): number {
    const value = schema[keyword]
    if (value === undefined) return absent
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0) {
      return fail("Invalid", place, [keyword], "must be an integer of at least 0")
    }
    if (value <= mostCount) return value
    return absent === Infinity ? absent : fail("TooLarge", place, [keyword], `must be at most ${mostCount}`)
  }

  #finite(place: Place, schema: Raw, keyword: string): number | undefined {
    const value = schema[keyword]
    if (value === undefined) return undefined
    return typeof value === "number" && Number.isFinite(value) ? value : fail("Invalid", place, [keyword], "must be a number")
  }

  #bound(place: Place, schema: Raw, inclusive: string, exclusive: string, sign: 1 | -1): Bound | undefined {
    const value = this.#finite(place, schema, inclusive)
    const flag = schema[exclusive]
    const own = value === undefined ? undefined : { value, exclusive: flag === true }
    if (typeof flag === "boolean") return own
    const other = this.#finite(place, schema, exclusive)
    return stricter(own, other === undefined ? undefined : { value: other, exclusive: true }, sign)
  }

  #number(place: Place, schema: Raw, integer: boolean): NumberCase {
    const range = this.#integerRange(place, schema)
    const lowest = range === undefined ? undefined : { value: range[0], exclusive: false }
    const highest = range === undefined ? undefined : { value: range[1], exclusive: range[1] >= 2 ** 63 }
    const min = stricter(this.#bound(place, schema, "minimum", "exclusiveMinimum", 1), lowest, 1)
    const max = stricter(this.#bound(place, schema, "maximum", "exclusiveMaximum", -1), highest, -1)
    const multiple = this.#multiple(place, schema)
    const whole = integer || range !== undefined || multiple?.scale === 0
    return {
      type: "number",
      integer: whole,
      ...(min === undefined ? {} : { min }),
      ...(max === undefined ? {} : { max }),
      ...(multiple === undefined ? {} : { multiple: whole ? integerMultiple(multiple) : multiple }),
      place
    }
  }

  #integerRange(place: Place, schema: Raw): readonly [number, number] | undefined {
    const { format } = schema
    if (format === undefined) return undefined
    if (typeof format !== "string") return fail("Invalid", place, ["format"], "must be a string")
    const range = integerFormat(format)
    if (range === undefined && schema.type !== undefined && stringFormat(format) === undefined) this.#unknownFormat(place, format)
    return range
  }

  #unknownFormat(place: Place, format: string): never {
    return fail(
      "Unsupported",
      place,
      ["format"],
      `the format ${JSON.stringify(format.slice(0, 64))} is not one of ${stringFormats.join(", ")}`
    )
  }

  #multiple(place: Place, schema: Raw): Multiple | undefined {
    const value = this.#finite(place, schema, "multipleOf")
    if (value === undefined) return undefined
    if (value <= 0) return fail("Invalid", place, ["multipleOf"], "must be greater than 0")
    const { fraction, integer } = decimalOf(value)
    if (integer.length > 15 || fraction.length > 15) return fail("TooLarge", place, ["multipleOf"], "has too many digits to be enforced")
    return reduced({ unit: BigInt(integer + fraction), scale: fraction.length })
  }

  #string(place: Place, schema: Raw, typed: boolean): StringCase {
    const languages: Array<Regular.Regular> = []
    if (schema.pattern !== undefined) languages.push(this.pattern(place, schema.pattern, "pattern"))
    const { format } = schema
    if (format !== undefined) {
      if (typeof format !== "string") return fail("Invalid", place, ["format"], "must be a string")
      const range = integerFormat(format)
      if (range === undefined) languages.push(stringFormat(format) ?? this.#unknownFormat(place, format))
      else if (typed) {
        languages.push(
          integers(BigInt(range[0]), BigInt(range[1]) - (range[1] >= 2 ** 63 ? 1n : 0n))
        )
      }
    }
    return {
      type: "string",
      min: this.#count(place, schema, "minLength", 0),
      max: this.#count(place, schema, "maxLength", Infinity),
      languages,
      excluded: []
    }
  }

  /** The texts in which a pattern is found. */
  pattern(place: Place, source: unknown, ...keys: ReadonlyArray<string>): Regular.Regular {
    if (typeof source !== "string") return fail("Invalid", place, keys, "must be a string")
    const known = this.#patterns.get(source)
    if (known !== undefined) return known
    const language = Pattern.containing(
      source,
      { dialect: "ecma" },
      (reason, message, offset) => fail(reason, place, keys, `${message} (character ${offset + 1} of the pattern)`)
    )
    this.#patterns.set(source, language)
    return language
  }

  #array(place: Place, schema: Raw): ArrayCase {
    const { items, prefixItems } = schema
    const [prefixKey, prefix] = Array.isArray(items) ? ["items", items] as const : ["prefixItems", prefixItems ?? []] as const
    if (!Array.isArray(prefix)) return fail("Invalid", place, [prefixKey], "must be an array")
    const restKey = Array.isArray(items) ? "additionalItems" : "items"
    const rest = schema[restKey] === undefined && schema.unevaluatedItems !== undefined
      ? this.#unevaluated(place, schema, "unevaluatedItems", schema.contains === undefined)
      : schema[restKey] === undefined
      ? undefined
      : this.#document.child(place, schema[restKey], restKey)
    if (schema.uniqueItems !== undefined && typeof schema.uniqueItems !== "boolean") {
      return fail("Invalid", place, ["uniqueItems"], "must be a boolean")
    }
    return {
      type: "array",
      layers: prefix.length === 0 && rest === undefined
        ? []
        : [{ prefix: prefix.map((item, index) => this.#document.child(place, item, prefixKey, index)), rest }],
      min: this.#count(place, schema, "minItems", 0),
      max: this.#count(place, schema, "maxItems", Infinity),
      contains: schema.contains === undefined || schema.minContains === 0 ? [] : [this.#document.child(place, schema.contains, "contains")],
      ...(schema.uniqueItems === true ? { unique: place } : {})
    }
  }

  #unevaluated(place: Place, schema: Raw, keyword: string, alone: boolean): Place {
    if (!alone || applicators.some((applicator) => schema[applicator] !== undefined)) {
      return fail("Unsupported", place, [keyword], "cannot be enforced beside keywords that evaluate in place")
    }
    return this.#document.child(place, schema[keyword], keyword)
  }

  #object(place: Place, schema: Raw): ObjectCase {
    const properties = this.#schemas(place, schema, "properties")
    const patterns = [...this.#schemas(place, schema, "patternProperties")].map(([source, value]) => ({
      source,
      language: this.pattern(place, source, "patternProperties", source),
      place: value
    }))
    const others = schema.additionalProperties !== undefined
      ? this.#document.child(place, schema.additionalProperties, "additionalProperties")
      : schema.unevaluatedProperties !== undefined
      ? this.#unevaluated(place, schema, "unevaluatedProperties", true)
      : undefined
    return {
      type: "object",
      layers: properties.size === 0 && patterns.length === 0 && others === undefined ? [] : [{ properties, patterns, others }],
      required: new Set(this.names(place, schema.required, "required")),
      min: this.#count(place, schema, "minProperties", 0),
      max: this.#count(place, schema, "maxProperties", Infinity),
      names: schema.propertyNames === undefined ? [] : [this.#document.child(place, schema.propertyNames, "propertyNames")],
      place
    }
  }

  /** A list of property names. */
  names(place: Place, value: unknown, ...keys: ReadonlyArray<string>): ReadonlyArray<string> {
    if (value === undefined) return []
    if (!Array.isArray(value)) return fail("Invalid", place, keys, "must be an array of strings")
    return value.map((name: unknown, index) =>
      typeof name === "string" ? name : fail("Invalid", place, [...keys, index], "must be a string")
    )
  }

  #schemas(place: Place, schema: Raw, keyword: string): ReadonlyMap<string, Place> {
    const value = schema[keyword]
    if (value === undefined) return new Map()
    if (!isObject(value)) return fail("Invalid", place, [keyword], "must be an object")
    return new Map(Object.entries(value).map(([name, inner]) => [name, this.#document.child(place, inner, keyword, name)]))
  }
}
