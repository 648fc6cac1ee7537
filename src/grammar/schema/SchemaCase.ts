import type { Bound, Multiple } from "../DecimalText.ts"
import * as Regular from "../Regular.ts"
import type { Place } from "./SchemaDocument.ts"

/** A value satisfies a goal when it satisfies all its schemas. */
export type Goal = ReadonlyArray<Place>

/**
 * One way to satisfy a goal, of one JSON type or a list of values. A goal is a union of cases; what is below an array or object stays a goal, so
 * that recursion and size are those of the schema.
 */
export type Case = ValuesCase | NumberCase | StringCase | ArrayCase | ObjectCase

export interface ValuesCase {
  readonly type: "values"
  readonly values: ReadonlyArray<unknown>
}

export interface NumberCase {
  readonly type: "number"
  readonly integer: boolean
  readonly min?: Bound
  readonly max?: Bound
  readonly multiple?: Multiple
  /** Where the multiple stands, for errors. */
  readonly place: Place
}

export interface StringCase {
  readonly type: "string"
  /** Code points. */
  readonly min: number
  readonly max: number
  /** The text is in all of these … */
  readonly languages: ReadonlyArray<Regular.Regular>
  /** … and in none of these. */
  readonly excluded: ReadonlyArray<Regular.Regular>
}

/** What one schema says of an array: its first elements, and the others. */
export interface ArrayLayer {
  readonly prefix: ReadonlyArray<Place>
  readonly rest: Place | undefined
}

export interface ArrayCase {
  readonly type: "array"
  readonly layers: ReadonlyArray<ArrayLayer>
  readonly min: number
  readonly max: number
  readonly contains: ReadonlyArray<Place>
  /** A schema that says `uniqueItems`. */
  readonly unique?: Place
}

/** What one schema says of an object. `others` are the properties that it neither names nor has a pattern for. */
export interface ObjectLayer {
  readonly properties: ReadonlyMap<string, Place>
  readonly patterns: ReadonlyArray<{ readonly source: string; readonly language: Regular.Regular; readonly place: Place }>
  readonly others: Place | undefined
}

export interface ObjectCase {
  readonly type: "object"
  readonly layers: ReadonlyArray<ObjectLayer>
  readonly required: ReadonlySet<string>
  readonly min: number
  readonly max: number
  /** Schemas of `propertyNames`. */
  readonly names: ReadonlyArray<Place>
  /** Where it stands, for errors. */
  readonly place: Place
}

/** The texts of a string case. */
export const languageOf = ({ excluded, languages, max, min }: StringCase): Regular.Regular => {
  const length = min === 0 && max === Infinity ? [] : [Regular.repeat(Regular.anyCharacter, min, max)]
  const parts = [...length, ...languages, ...excluded.map(Regular.not)]
  return parts.length === 0 ? Regular.everything : Regular.and(parts)
}

/** Equal JSON values have equal texts here, whatever the order of their keys. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => a < b ? -1 : 1))
      : inner)

const gcd = (a: bigint, b: bigint): bigint => b === 0n ? a : gcd(b, a % b)

const scaled = ({ scale, unit }: Multiple, to: number): bigint => unit * 10n ** BigInt(to - scale)

/** The multiples of both. */
export const commonMultiple = (a: Multiple, b: Multiple): Multiple => {
  const scale = Math.max(a.scale, b.scale)
  const [left, right] = [scaled(a, scale), scaled(b, scale)]
  return reduced({ unit: left / gcd(left, right) * right, scale })
}

export const reduced = ({ scale, unit }: Multiple): Multiple =>
  scale > 0 && unit % 10n === 0n ? reduced({ unit: unit / 10n, scale: scale - 1 }) : { unit, scale }

/** The integers among the multiples. */
export const integerMultiple = ({ scale, unit }: Multiple): Multiple => {
  const whole = 10n ** BigInt(scale)
  return { unit: unit / gcd(unit, whole), scale: 0 }
}

/** The stricter of two bounds; `sign` 1 for lower and -1 for upper ones. */
export const stricter = (a: Bound | undefined, b: Bound | undefined, sign: 1 | -1): Bound | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  if (a.value === b.value) return a.exclusive ? a : b
  return sign * (a.value - b.value) > 0 ? a : b
}

/** The smallest and largest integers of a case. */
export const integerBounds = ({ max, min }: NumberCase): { readonly low: number; readonly high: number } => ({
  low: min === undefined ? -Infinity : min.exclusive && Number.isInteger(min.value) ? min.value + 1 : Math.ceil(min.value),
  high: max === undefined ? Infinity : max.exclusive && Number.isInteger(max.value) ? max.value - 1 : Math.floor(max.value)
})
