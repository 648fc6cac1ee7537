import * as CodePoints from "./CodePoints.ts"
import * as Derivatives from "./Derivatives.ts"
import * as Regular from "./Regular.ts"

type Language = Regular.Regular

/** Digits of an integer that JSON's writers still write without an exponent. */
export const mostDigits = 21

/** Digits of a multiple: beyond, readers round the number and it is a multiple no more. */
const mostMultipleDigits = 15

/** Multiples that are written out one by one. */
const mostListed = 512

const mostStates = 4096

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

const bounded = (value: bigint | undefined, sign: 1n | -1n): bigint | undefined =>
  value !== undefined && sign * value >= 10n ** BigInt(mostDigits) ? undefined : value

/** Rounds towards negative infinity. */
const floorDivide = (a: bigint, b: bigint): bigint => a / b - (a % b !== 0n && a < 0n ? 1n : 0n)

/**
 * The canonical texts (no leading zeros, no `-0`) of the integers from `min` to `max` that are multiples of `multiple` ≥ 1. Without a bound,
 * an integer has up to `mostDigits` digits, and a multiple up to 15. Undefined: the automaton would be too large.
 */
export const integers = (min: bigint | undefined, max: bigint | undefined, multiple: bigint): Language | undefined => {
  const low = bounded(min, -1n)
  const high = bounded(max, 1n)
  if (multiple === 1n) return signed(low, high, (from, to) => natural(from, to))
  const first = low === undefined ? undefined : -floorDivide(-low, multiple)
  const last = high === undefined ? undefined : floorDivide(high, multiple)
  if (first !== undefined && last !== undefined && last - first < mostListed) {
    const texts: Array<Language> = []
    for (let factor = first; factor <= last; factor++) texts.push(Regular.text((factor * multiple).toString()))
    return Regular.choice(texts)
  }
  let zeros = 0
  let odd = multiple
  for (; odd % 10n === 0n; odd /= 10n) zeros++
  const suffix = Regular.text("0".repeat(zeros))
  const automaton = new Multiples(Number(odd))
  const scaled = signed(
    first === undefined ? undefined : first * odd,
    last === undefined ? undefined : last * odd,
    (from, to) =>
      from === 0n
        ? Regular.choice([Regular.text("0"), positive(automaton, 1n, to, zeros, suffix)])
        : positive(automaton, from, to, zeros, suffix)
  )
  return automaton.tooLarge ? undefined : scaled
}

const positive = (automaton: Multiples, from: bigint, to: bigint | undefined, zeros: number, suffix: Language): Language =>
  Regular.sequence([automaton.within(natural(from, to, Math.max(1, mostMultipleDigits - zeros))), suffix])

const signed = (
  low: bigint | undefined,
  high: bigint | undefined,
  magnitudes: (from: bigint, to: bigint | undefined) => Language
): Language => {
  const branches: Array<Language> = []
  if (high === undefined || high >= 0n) {
    branches.push(magnitudes(low === undefined || low < 0n ? 0n : low, high))
  }
  if (low === undefined || low < 0n) {
    const from = high === undefined || high >= 0n ? 1n : -high
    branches.push(Regular.sequence([Regular.text("-"), magnitudes(from, low === undefined ? undefined : -low)]))
  }
  return Regular.choice(branches)
}

/** Narrows digits to those of a multiple, by the remainder of what was read. */
class Multiples {
  readonly #divisor: number
  readonly #states = new Map<string, Language>()
  tooLarge = false

  constructor(divisor: number) {
    this.#divisor = divisor
  }

  within(digits: Language): Language {
    return this.#divisor === 1 ? digits : this.#from(digits, 0)
  }

  #from(digits: Language, remainder: number): Language {
    const key = `${remainder} ${Derivatives.keyOf(digits)}`
    const known = this.#states.get(key)
    if (known !== undefined) return known
    if (this.#states.size >= mostStates) {
      this.tooLarge = true
      return Regular.never
    }
    const branches: Array<Language> = Regular.isNullable(digits) && remainder === 0 ? [Regular.empty] : []
    for (let value = 0; value < 10 && !this.tooLarge; value++) {
      const rest = Derivatives.derivative(digits, 0x30 + value)
      if (Regular.isNever(rest)) continue
      branches.push(Regular.sequence([Regular.text(String(value)), this.#from(rest, (remainder * 10 + value) % this.#divisor)]))
    }
    const state = Regular.choice(branches)
    this.#states.set(key, state)
    return state
  }
}
