import { isText, textOf } from "./MarkedText.ts"
import { compare, contains, isEqual, numberOf } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import type { Run } from "./Run.ts"
import { isLower, isUpper } from "./StringMethods.ts"
import { Callable, Dict, Float, Generator, JinjaError, Tuple, Undefined, undefinedError, type Value, View } from "./Values.ts"

export type Test = (run: Run, value: Value, args: ReadonlyArray<Value>) => boolean

const argument = (args: ReadonlyArray<Value>): Value => {
  const value = args[0]
  if (value === undefined) throw new JinjaError("the test needs an argument")
  return value
}

const remainder = (value: Value, divisor: Value): number => {
  const number = numberOf(value)
  const by = numberOf(divisor)
  if (number === undefined || by === undefined) {
    throw value instanceof Undefined ? undefinedError(value) : new JinjaError("the test needs a number")
  }
  if (Number(by) === 0) throw new JinjaError("division by zero")
  return typeof number === "number" && typeof by === "number" ? number % by : Number(BigInt(number) % BigInt(by))
}

const isInteger = (value: Value): boolean => typeof value === "number" || typeof value === "bigint"

const identical = (left: Value, right: Value): boolean =>
  isText(left) && isText(right)
    ? textOf(left) === textOf(right)
    : left instanceof Float && right instanceof Float
    ? left.value === right.value
    : left === right

const equal: Test = (run, value, args) => isEqual(value, argument(args), run)
const notEqual: Test = (run, value, args) => !isEqual(value, argument(args), run)
const greater: Test = (run, value, args) => compare(value, argument(args), ">", run) > 0
const greaterOrEqual: Test = (run, value, args) => compare(value, argument(args), ">=", run) >= 0
const less: Test = (run, value, args) => compare(value, argument(args), "<", run) < 0
const lessOrEqual: Test = (run, value, args) => compare(value, argument(args), "<=", run) <= 0

const isSized = (value: Value): boolean =>
  isText(value) || Array.isArray(value) || value instanceof Tuple || value instanceof Dict || value instanceof Undefined

const tests: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["boolean", (_, value) => typeof value === "boolean"],
  ["callable", (_, value) => value instanceof Callable || value instanceof Undefined],
  ["defined", (_, value) => !(value instanceof Undefined)],
  ["divisibleby", (_, value, args) => remainder(value, argument(args)) === 0],
  ["eq", equal],
  ["equalto", equal],
  ["==", equal],
  ["escaped", () => false],
  ["even", (_, value) => remainder(value, 2) === 0],
  ["false", (_, value) => value === false],
  ["float", (_, value) => value instanceof Float],
  ["ge", greaterOrEqual],
  [">=", greaterOrEqual],
  ["gt", greater],
  ["greaterthan", greater],
  [">", greater],
  ["in", (run, value, args) => contains(argument(args), value, run)],
  ["integer", (_, value) => isInteger(value)],
  ["iterable", (_, value) => isSized(value) || value instanceof Generator || value instanceof View],
  ["le", lessOrEqual],
  ["<=", lessOrEqual],
  ["lower", (run, value) => isLower(textOf(stringOf(value, run)))],
  ["lt", less],
  ["lessthan", less],
  ["<", less],
  ["mapping", (_, value) => value instanceof Dict],
  ["ne", notEqual],
  ["!=", notEqual],
  ["none", (_, value) => value === null],
  ["number", (_, value) => numberOf(value) !== undefined],
  ["odd", (_, value) => Math.abs(remainder(value, 2)) === 1],
  ["sameas", (_, value, args) => identical(value, argument(args))],
  ["sequence", (_, value) => isSized(value)],
  ["string", (_, value) => isText(value)],
  ["true", (_, value) => value === true],
  ["undefined", (_, value) => value instanceof Undefined],
  ["upper", (run, value) => isUpper(textOf(stringOf(value, run)))]
])

export const test = (name: string): Test | undefined => tests.get(name)
