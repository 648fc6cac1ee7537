import * as CodePoints from "./CodePoints.ts"
import * as Derivatives from "./Derivatives.ts"
import type { GrammarBuilder } from "./GrammarBuilder.ts"
import { bounded, natural, sides } from "./IntegerText.ts"
import * as Ir from "./Ir.ts"
import * as Regular from "./Regular.ts"
import { classNode, toNode } from "./RegularNode.ts"

/** Digits of a multiple: beyond, readers round the number and it is a multiple no more. */
const mostDigits = 15

/** Multiples that are written out one by one. */
const mostListed = 512

const mostStates = 4096

/** Rounds towards negative infinity. */
const floorDivide = (a: bigint, b: bigint): bigint => a / b - (a % b !== 0n && a < 0n ? 1n : 0n)

/**
 * The canonical texts of the multiples of `multiple` > 1 from `min` to `max`; without a bound, of up to 15 digits. Undefined: the automaton would be
 * too large.
 */
export const multiples = (
  min: bigint | undefined,
  max: bigint | undefined,
  multiple: bigint,
  builder: GrammarBuilder
): Ir.Node | undefined => {
  const low = bounded(min, -1n)
  const high = bounded(max, 1n)
  const first = low === undefined ? undefined : -floorDivide(-low, multiple)
  const last = high === undefined ? undefined : floorDivide(high, multiple)
  if (first !== undefined && last !== undefined && last - first < mostListed) {
    const texts: Array<Regular.Regular> = []
    for (let factor = first; factor <= last; factor++) texts.push(Regular.text((factor * multiple).toString()))
    return toNode(Regular.choice(texts))
  }
  let zeros = 0
  let unit = multiple
  for (; unit % 10n === 0n; unit /= 10n) zeros++
  const suffix = Ir.text("0".repeat(zeros))
  const automaton = new Multiples(Number(unit), builder)
  const branches = sides(first === undefined ? undefined : first * unit, last === undefined ? undefined : last * unit)
    .flatMap(({ from, negative, to }) => {
      const digits = automaton.within(natural(from === 0n ? 1n : from, to, Math.max(1, mostDigits - zeros)))
      const scaled = Ir.sequence(...(negative ? [Ir.text("-")] : []), digits, suffix)
      return from === 0n ? [Ir.text("0"), scaled] : [scaled]
    })
  return automaton.tooLarge ? undefined : Ir.choice(...branches)
}

/** Narrows digits to those of a multiple, by the remainder of what was read: one rule for each state. */
class Multiples {
  readonly #divisor: number
  readonly #builder: GrammarBuilder
  readonly #states = new Map<string, Ir.Node>()
  tooLarge = false

  constructor(divisor: number, builder: GrammarBuilder) {
    this.#divisor = divisor
    this.#builder = builder
  }

  within(digits: Regular.Regular): Ir.Node {
    return this.#divisor === 1 ? toNode(digits) : this.#from(digits, 0)
  }

  #from(digits: Regular.Regular, remainder: number): Ir.Node {
    const key = `${remainder} ${Derivatives.keyOf(digits)}`
    const known = this.#states.get(key)
    if (known !== undefined) return known
    const name = this.#builder.fresh("multiple")
    const state = Ir.rule(name)
    this.#states.set(key, state)
    if (this.#states.size > mostStates) this.tooLarge = true
    const targets = new Map<Ir.Node, Array<number>>()
    for (let value = 0; value < 10 && !this.tooLarge; value++) {
      const rest = Derivatives.derivative(digits, 0x30 + value)
      if (Regular.isNever(rest)) continue
      const target = this.#from(rest, (remainder * 10 + value) % this.#divisor)
      targets.set(target, [...targets.get(target) ?? [], 0x30 + value])
    }
    this.#builder.define(
      name,
      Ir.choice(
        ...(Regular.isNullable(digits) && remainder === 0 ? [Ir.text("")] : []),
        ...[...targets].map(([target, points]) =>
          Ir.sequence(classNode(CodePoints.of(...points.map((point) => [point, point] as const))), target)
        )
      )
    )
    return state
  }
}
