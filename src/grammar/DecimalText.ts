import * as CodePoints from "./CodePoints.ts"
import { digit, mostDigits, natural } from "./IntegerText.ts"
import * as Regular from "./Regular.ts"

type Language = Regular.Regular

export interface Bound {
  readonly value: number
  readonly exclusive: boolean
}

/** Multiples of unit / 10^scale. */
export interface Multiple {
  readonly unit: bigint
  readonly scale: number
}

/** Digits after the point: all that JSON's writers write of a double without an exponent. */
const mostFractionDigits = 24

/** Two decimals of as many digits are never read as one double. */
const exactDigits = 15

/** A JavaScript number in plain decimal notation. */
export const decimalOf = (value: number): { readonly negative: boolean; readonly integer: string; readonly fraction: string } => {
  const [mantissa = "0", exponent = "0"] = Math.abs(value).toString().split("e")
  const [whole = "0", part = ""] = mantissa.split(".")
  const shift = Number(exponent)
  const digits = whole + part
  const point = whole.length + shift
  const padded = point <= 0 ? "0".repeat(1 - point) + digits : digits.padEnd(point, "0")
  const at = Math.max(point, 1)
  return {
    negative: value < 0,
    integer: padded.slice(0, at).replace(/^0+(?=\d)/, ""),
    fraction: padded.slice(at).replace(/0+$/, "")
  }
}

const manyDigits = Regular.star(digit)
const point = Regular.text(".")
const nonZero = Regular.characters(CodePoints.of([0x31, 0x39]))
const above = (value: number): Language => Regular.characters(CodePoints.of([0x31 + value, 0x39]))
const below = (value: number): Language => Regular.characters(CodePoints.of([0x30, 0x2f + value]))
const fraction = (digits: Language): Language => Regular.sequence([point, digits])
const anyFraction = Regular.optional(fraction(Regular.repeat(digit, 1, Infinity)))
const zeros = Regular.star(Regular.text("0"))

/** Digits after the point that stand for at least (more than, if `exclusive`) 0.`bound`. */
const digitsFrom = (bound: string, exclusive: boolean): Language => {
  if (bound === "") return exclusive ? Regular.sequence([zeros, nonZero, manyDigits]) : manyDigits
  const first = Number(bound[0])
  return Regular.choice([
    Regular.sequence([above(first), manyDigits]),
    Regular.sequence([Regular.text(bound[0] ?? ""), digitsFrom(bound.slice(1), exclusive)])
  ])
}

/** Digits after the point that stand for at most (less than, if `exclusive`) 0.`bound`. */
const digitsTo = (bound: string, exclusive: boolean): Language => {
  if (bound === "") return exclusive ? Regular.never : zeros
  const first = Number(bound[0])
  return Regular.choice([
    Regular.empty,
    Regular.sequence([below(first), manyDigits]),
    Regular.sequence([Regular.text(bound[0] ?? ""), digitsTo(bound.slice(1), exclusive)])
  ])
}

/** Fractions, with the point or nothing at all, that stand for at least or more than 0.`bound`. */
const fractionFrom = (bound: string, exclusive: boolean): Language =>
  bound === "" && !exclusive ? anyFraction : fraction(digitsFrom(bound, exclusive))

const fractionTo = (bound: string, exclusive: boolean): Language =>
  bound === "" && exclusive
    ? Regular.never
    : Regular.choice([Regular.empty, fraction(Regular.and([Regular.repeat(digit, 1, Infinity), digitsTo(bound, exclusive)]))])

interface Magnitude {
  readonly integer: string
  readonly fraction: string
  readonly exclusive: boolean
}

const atLeast = ({ exclusive, fraction: part, integer }: Magnitude): Language =>
  Regular.choice([
    Regular.sequence([natural(BigInt(integer) + 1n, undefined), anyFraction]),
    Regular.sequence([Regular.text(integer), fractionFrom(part, exclusive)])
  ])

const atMost = ({ exclusive, fraction: part, integer }: Magnitude): Language =>
  Regular.choice([
    ...(integer === "0" ? [] : [Regular.sequence([natural(0n, BigInt(integer) - 1n), anyFraction])]),
    Regular.sequence([Regular.text(integer), fractionTo(part, exclusive)])
  ])

const plainDecimal = (fractionDigits: number): Language =>
  Regular.sequence([
    natural(0n, undefined),
    ...(fractionDigits === 0 ? [] : [Regular.optional(fraction(Regular.repeat(digit, 1, fractionDigits)))])
  ])

/** `e` and what follows; positive ones stay below 10^308, where a double ends. */
const smallExponent = Regular.sequence([
  Regular.characters(CodePoints.among("eE")),
  Regular.optional(Regular.characters(CodePoints.among("+-"))),
  Regular.repeat(digit, 1, 2)
])

/** One digit before the point and an exponent, up to 9.9…e307; as small as a double gets. */
const scientific = Regular.sequence([
  nonZero,
  Regular.optional(fraction(Regular.repeat(digit, 1, 17))),
  Regular.characters(CodePoints.among("eE")),
  Regular.choice([
    Regular.sequence([Regular.text("-"), Regular.repeat(digit, 3, 3)]),
    Regular.sequence([
      Regular.optional(Regular.text("+")),
      Regular.choice([
        Regular.sequence([Regular.characters(CodePoints.among("12")), digit, digit]),
        Regular.sequence([Regular.text("30"), Regular.characters(CodePoints.of([0x30, 0x37]))])
      ])
    ])
  ])
])

/** Zero in every notation has no other digit before its exponent. */
const withoutZero = Regular.sequence([
  Regular.choice([
    Regular.sequence([natural(1n, undefined), Regular.optional(fraction(Regular.repeat(digit, 1, mostFractionDigits)))]),
    Regular.sequence([Regular.text("0"), fraction(Regular.and([Regular.repeat(digit, 1, mostFractionDigits), digitsFrom("", true)]))])
  ]),
  Regular.optional(smallExponent)
])

const anyMagnitude = Regular.choice([
  Regular.sequence([plainDecimal(mostFractionDigits), Regular.optional(smallExponent)]),
  scientific
])

const minus = Regular.text("-")

/** Every number that a double holds, in plain and in scientific notation. */
const anyNumber = Regular.sequence([Regular.optional(minus), anyMagnitude])

const isVacuous = (bound: Bound): boolean => Math.abs(bound.value) >= 1e308

/** Fractions of the multiples: undefined where they are more than can be listed. */
const fractionsOf = ({ scale, unit }: Multiple): Language | undefined => {
  const whole = 10n ** BigInt(scale)
  if (unit === 1n) return Regular.optional(fraction(Regular.repeat(digit, 1, scale)))
  if (whole % unit !== 0n || whole / unit > 1000n) return undefined
  const texts: Array<Language> = []
  for (let value = 0n; value < whole; value += unit) {
    const digits = value.toString().padStart(scale, "0").replace(/0+$/, "")
    texts.push(fraction(Regular.sequence([
      Regular.text(digits),
      Regular.repeat(Regular.text("0"), digits === "" ? 1 : 0, scale - digits.length)
    ])))
  }
  return Regular.optional(Regular.choice(texts))
}

/**
 * The texts of the numbers between two bounds. With a bound other than 0 there is no exponent; the digits are so many that a reader cannot
 * round a number onto an excluded bound. Undefined: the multiples cannot be told from the text.
 */
export const numbers = (min: Bound | undefined, max: Bound | undefined, multiple: Multiple | undefined): Language | undefined => {
  const low = min === undefined || (isVacuous(min) && min.value < 0) ? undefined : min
  const high = max === undefined || (isVacuous(max) && max.value > 0) ? undefined : max
  if (multiple === undefined && low === undefined && high === undefined) return anyNumber
  if (multiple === undefined) {
    const oneSided = bySign(low, high)
    if (oneSided !== undefined) return oneSided
  }
  const fractions = multiple === undefined ? undefined : fractionsOf(multiple)
  if (multiple !== undefined && fractions === undefined) return undefined
  const bounds = [low, high].flatMap((bound) => bound === undefined ? [] : [decimalOf(bound.value)])
  const exclusive = [low, high].some((bound) => bound?.exclusive === true && bound.value !== 0)
  const room = Math.max(1, exactDigits - Math.max(0, ...bounds.map(({ integer }) => integer.length)))
  const written = Math.max(exclusive ? room : mostFractionDigits, ...bounds.map(({ fraction: part }) => part.length))
  const shape = fractions === undefined ? plainDecimal(written) : Regular.sequence([natural(0n, undefined), fractions])
  return Regular.choice([
    magnitudes(shape, low, high, false),
    Regular.sequence([minus, magnitudes(shape, negated(high), negated(low), true)])
  ])
}

const negated = (bound: Bound | undefined): Bound | undefined => bound === undefined ? undefined : { ...bound, value: -bound.value }

/** Numbers without a sign from `low` to `high`; of the negative ones, not zero. */
const magnitudes = (shape: Language, low: Bound | undefined, high: Bound | undefined, negative: boolean): Language => {
  if (high !== undefined && (high.value < 0 || (high.value === 0 && (high.exclusive || negative)))) return Regular.never
  const lowest: Bound | undefined = low === undefined || low.value < 0 ? undefined : low
  const floor = negative && lowest === undefined
    ? { value: 0, exclusive: true }
    : negative && lowest?.value === 0
    ? { value: 0, exclusive: true }
    : lowest
  return Regular.and([
    shape,
    ...(floor === undefined || (floor.value === 0 && !floor.exclusive)
      ? []
      : [atLeast({ ...decimalOf(floor.value), exclusive: floor.exclusive })]),
    ...(high === undefined || decimalOf(high.value).integer.length > mostDigits
      ? []
      : [atMost({ ...decimalOf(high.value), exclusive: high.exclusive })])
  ])
}

/** Where the sign alone decides, exponents are allowed. */
const bySign = (low: Bound | undefined, high: Bound | undefined): Language | undefined => {
  if (high === undefined && low?.value === 0) {
    return low.exclusive
      ? withoutZero
      : Regular.sequence([plainDecimal(mostFractionDigits), Regular.optional(smallExponent)])
  }
  if (low === undefined && high?.value === 0) {
    const negative = Regular.sequence([minus, withoutZero])
    return high.exclusive ? negative : Regular.choice([Regular.text("0"), negative])
  }
  return undefined
}
