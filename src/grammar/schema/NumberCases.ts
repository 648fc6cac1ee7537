import type { Bound } from "../DecimalText.ts"
import { type Case, commonMultiple, integerBounds, integerMultiple, type NumberCase, stricter, type ValuesCase } from "./SchemaCase.ts"

type Cases = ReadonlyArray<Case>

export const numberHolds = (own: NumberCase, value: number): boolean => {
  if (own.integer && !Number.isInteger(value)) return false
  if (own.min !== undefined && !(value > own.min.value || (value === own.min.value && !own.min.exclusive))) return false
  if (own.max !== undefined && !(value < own.max.value || (value === own.max.value && !own.max.exclusive))) return false
  if (own.multiple === undefined) return true
  const [whole = "0", exponent = "0"] = value.toString().split("e")
  const [integer = "0", part = ""] = whole.split(".")
  const scale = part.length - Number(exponent)
  const digits = BigInt(integer + part)
  const common = Math.max(scale, own.multiple.scale, 0)
  return digits * 10n ** BigInt(common - scale) % (own.multiple.unit * 10n ** BigInt(common - own.multiple.scale)) === 0n
}

export const numberPossible = (own: NumberCase): boolean => {
  if (own.integer) {
    const { high, low } = integerBounds(own)
    return low <= high
  }
  if (own.min === undefined || own.max === undefined || own.min.value < own.max.value) return true
  return own.min.value === own.max.value && !own.min.exclusive && !own.max.exclusive
}

export const numberIntersection = (a: NumberCase, b: NumberCase): NumberCase | undefined => {
  const min = stricter(a.min, b.min, 1)
  const max = stricter(a.max, b.max, -1)
  const multiple = a.multiple === undefined || b.multiple === undefined ? a.multiple ?? b.multiple : commonMultiple(a.multiple, b.multiple)
  const integer = a.integer || b.integer || multiple?.scale === 0
  const both: NumberCase = {
    type: "number",
    integer,
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(multiple === undefined ? {} : { multiple: integer ? integerMultiple(multiple) : multiple }),
    place: a.multiple === undefined ? b.place : a.place
  }
  return numberPossible(both) ? both : undefined
}

/** What lies below and above the excluded numbers; undefined where there are others between them. */
export const numberDifference = (from: NumberCase, excluded: NumberCase): Cases | undefined => {
  if (
    excluded.multiple !== undefined &&
    !(from.multiple !== undefined && isMultiple(from.multiple.unit, from.multiple.scale, excluded.multiple))
  ) {
    return undefined
  }
  if (excluded.integer && !from.integer) return undefined
  return outside(from, excluded.min, excluded.max)
}

const isMultiple = (unit: bigint, scale: number, of: { readonly unit: bigint; readonly scale: number }): boolean => {
  const common = Math.max(scale, of.scale)
  return unit * 10n ** BigInt(common - scale) % (of.unit * 10n ** BigInt(common - of.scale)) === 0n
}

const outside = (from: NumberCase, min: Bound | undefined, max: Bound | undefined): Cases => {
  const below = min === undefined ? undefined : stricter(from.max, { value: min.value, exclusive: !min.exclusive }, -1)
  const above = max === undefined ? undefined : stricter(from.min, { value: max.value, exclusive: !max.exclusive }, 1)
  return [...(below === undefined ? [] : [{ ...from, max: below }]), ...(above === undefined ? [] : [{ ...from, min: above }])]
    .filter(numberPossible)
}

/** Numbers other than a few. */
export const pointsDifference = (from: NumberCase, excluded: ValuesCase): Cases | undefined => {
  if (excluded.values.length > 64) return undefined
  let left: Cases = [from]
  for (const value of excluded.values) {
    if (typeof value !== "number") return undefined
    const bound = { value, exclusive: false }
    left = left.flatMap((own) => own.type === "number" && numberHolds(own, value) ? outside(own, bound, bound) : [own])
  }
  return left
}
