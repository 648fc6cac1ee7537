import * as CodePoints from "./CodePoints.ts"
import * as Regular from "./Regular.ts"

type Language = Regular.Regular

/** Digits of an integer that JSON's writers still write without an exponent. */
export const mostDigits = 21

export const digit: Language = Regular.characters(CodePoints.of([0x30, 0x39]))

const digitsBetween = (first: number, last: number): Language => Regular.characters(CodePoints.of([0x30 + first, 0x30 + last]))

const someDigits = (count: number): Language => Regular.repeat(digit, count, count)

/** The texts of as many digits as both bounds have, from `low` to `high`. */
const between = (low: string, high: string): Language => {
  if (low === high) return Regular.text(low)
  if (/^0*$/.test(low) && /^9*$/.test(high)) return someDigits(low.length)
  let common = 0
  while (low[common] === high[common]) common++
  if (common > 0) return Regular.sequence([Regular.text(low.slice(0, common)), between(low.slice(common), high.slice(common))])
  const [restOfLow, restOfHigh] = [low.slice(1), high.slice(1)]
  const wholeLow = /^0*$/.test(restOfLow)
  const wholeHigh = /^9*$/.test(restOfHigh)
  const first = Number(low[0]) + (wholeLow ? 0 : 1)
  const last = Number(high[0]) - (wholeHigh ? 0 : 1)
  return Regular.choice([
    ...(wholeLow ? [] : [Regular.sequence([Regular.text(low[0] ?? ""), between(restOfLow, "9".repeat(restOfLow.length))])]),
    ...(first <= last ? [Regular.sequence([digitsBetween(first, last), someDigits(restOfLow.length)])] : []),
    ...(wholeHigh ? [] : [Regular.sequence([Regular.text(high[0] ?? ""), between("0".repeat(restOfHigh.length), restOfHigh)])])
  ])
}

/** Integers from `low` ≥ 0 to `high` without a sign; `high` undefined: as many digits as `digits`. */
export const natural = (low: bigint, high: bigint | undefined, digits: number = mostDigits): Language => {
  if (high !== undefined && low > high) return Regular.never
  if (low === 0n) return Regular.choice([Regular.text("0"), natural(1n, high, digits)])
  const [from, to] = [low.toString(), high?.toString()]
  if (to !== undefined && from.length === to.length) return between(from, to)
  const branches = [between(from, "9".repeat(from.length))]
  const last = to === undefined ? Math.max(digits, from.length) : to.length - 1
  if (last > from.length) branches.push(Regular.sequence([digitsBetween(1, 9), Regular.repeat(digit, from.length, last - 1)]))
  if (to !== undefined) branches.push(between(`1${"0".repeat(to.length - 1)}`, to))
  return Regular.choice(branches)
}

/** A bound that texts of so many digits can meet. */
export const bounded = (value: bigint | undefined, sign: 1n | -1n): bigint | undefined =>
  value !== undefined && sign * value >= 10n ** BigInt(mostDigits) ? undefined : value

/** The magnitudes on both sides of 0 that a range has; the negative ones without 0. */
export const sides = (low: bigint | undefined, high: bigint | undefined): ReadonlyArray<{
  readonly negative: boolean
  readonly from: bigint
  readonly to: bigint | undefined
}> => [
  ...(high === undefined || high >= 0n ? [{ negative: false, from: low === undefined || low < 0n ? 0n : low, to: high }] : []),
  ...(low === undefined || low < 0n
    ? [{ negative: true, from: high === undefined || high >= 0n ? 1n : -high, to: low === undefined ? undefined : -low }]
    : [])
]

/** The canonical texts (no leading zeros, no `-0`) of the integers from `min` to `max`; without a bound, of up to `mostDigits` digits. */
export const integers = (min: bigint | undefined, max: bigint | undefined): Language =>
  Regular.choice(
    sides(bounded(min, -1n), bounded(max, 1n)).map(({ from, negative, to }) =>
      Regular.sequence([...(negative ? [Regular.text("-")] : []), natural(from, to)])
    )
  )
