import { type Filter, orElse } from "./Filter.ts"
import { isText, textOf } from "./MarkedText.ts"
import { negate } from "./Operators.ts"
import { numberOf } from "./PythonEquality.ts"
import { strip } from "./StringMethods.ts"
import { Float, integer, JinjaError, typeName, Undefined, undefinedError } from "./Values.ts"

export const toInteger: Filter = (_, value, args) => {
  const fallback = orElse(args.get(0, "default"), 0)
  const base = args.integer(1, "base") ?? 10
  if (value instanceof Float) return Number.isFinite(value.value) ? integer(BigInt(Math.trunc(value.value))) : fallback
  const number = numberOf(value)
  if (number !== undefined) return number
  if (value instanceof Undefined) throw undefinedError(value)
  if (!isText(value)) return fallback
  const source = textOf(strip(value, undefined, "both")).replace(/(?<=\d)_(?=\d)/g, "")
  if (base === 10 && /^[-+]?\d+$/.test(source)) return integer(BigInt(source.replace(/^\+/, "")))
  if (base === 10) {
    const float = Number(source)
    return source !== "" && /^[-+\d.]/.test(source) && !/^[-+]?0[xob]/i.test(source) && Number.isFinite(float)
      ? integer(BigInt(Math.trunc(float)))
      : fallback
  }
  const parsed = /^[-+]?[0-9a-z]+$/i.test(source) ? Number.parseInt(source, base) : Number.NaN
  return Number.isNaN(parsed) ? fallback : integer(parsed)
}

export const toFloat: Filter = (_, value, args) => {
  const fallback = orElse(args.get(0, "default"), new Float(0))
  const number = numberOf(value)
  if (number !== undefined) return new Float(Number(number))
  if (value instanceof Undefined) throw undefinedError(value)
  if (!isText(value)) return fallback
  const source = textOf(strip(value, undefined, "both"))
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(source) ? new Float(Number(source)) : fallback
}

/** Rounds half to even in decimal, as Python does for the value that a float really has. */
const roundHalfEven = (value: number, digits: number): number => {
  const factor = 10 ** digits
  const scaled = value * factor
  if (digits === 0 && Math.abs(scaled % 1) === 0.5) return 2 * Math.round(scaled / 2)
  return digits >= 0 && digits <= 100 ? Number(value.toFixed(digits)) : Math.round(scaled) / factor
}

export const round: Filter = (_, value, args) => {
  const number = numberOf(value)
  if (number === undefined) {
    throw value instanceof Undefined
      ? undefinedError(value)
      : new JinjaError(`round needs a number, not ${typeName(value)}`)
  }
  const digits = args.integer(0, "precision") ?? 0
  const method = args.get(1, "method") === undefined ? "common" : args.word(1, "method")
  const factor = 10 ** digits
  if (method === "ceil") return new Float(Math.ceil(Number(number) * factor) / factor)
  if (method === "floor") return new Float(Math.floor(Number(number) * factor) / factor)
  if (method !== "common") throw new JinjaError("method must be common, ceil or floor")
  return value instanceof Float
    ? new Float(roundHalfEven(value.value, digits))
    : digits >= 0
    ? number
    : integer(roundHalfEven(Number(number), digits))
}

export const absolute: Filter = (_, value) => {
  if (value instanceof Float) return new Float(Math.abs(value.value))
  const number = numberOf(value)
  return number === undefined || number < 0 ? negate(value) : number
}
