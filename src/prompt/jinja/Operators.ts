import { percentFormat } from "./Formatting.ts"
import { concat, isText, join, textOf } from "./MarkedText.ts"
import { compare, contains, isEqual, numberOf } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import type { Run } from "./Run.ts"
import { Float, integer, JinjaError, Tuple, typeName, Undefined, undefinedError, type Value } from "./Values.ts"

export type Operator = (left: Value, right: Value, run: Run) => Value

const unsupported = (operator: string, left: Value, right: Value): JinjaError => {
  if (left instanceof Undefined) return undefinedError(left)
  if (right instanceof Undefined) return undefinedError(right)
  return operator === "+" && isText(left)
    ? new JinjaError(`can only concatenate str (not "${typeName(right)}") to str`)
    : new JinjaError(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`)
}

const floorMod = (left: number, right: number): number => {
  const rest = left % right
  return rest !== 0 && (rest < 0) !== (right < 0) ? rest + right : rest
}

const floorDivide = (left: bigint, right: bigint): bigint => {
  const quotient = left / right
  return left % right !== 0n && (left < 0n) !== (right < 0n) ? quotient - 1n : quotient
}

const onFloats = (operator: string, left: number, right: number): number => {
  if (right === 0 && operator !== "+" && operator !== "-" && operator !== "*" && operator !== "**") {
    throw new JinjaError("division by zero")
  }
  switch (operator) {
    case "+":
      return left + right
    case "-":
      return left - right
    case "*":
      return left * right
    case "/":
      return left / right
    case "//":
      return Math.floor(left / right)
    case "%":
      return floorMod(left, right)
    default:
      if (left === 0 && right < 0) throw new JinjaError("0.0 cannot be raised to a negative power")
      return left ** right
  }
}

const onIntegers = (operator: string, left: bigint, right: bigint): Value => {
  switch (operator) {
    case "+":
      return integer(left + right)
    case "-":
      return integer(left - right)
    case "*":
      return integer(left * right)
    case "//":
      return integer(floorDivide(left, right))
    case "%":
      return integer(left - floorDivide(left, right) * right)
    default:
      return integer(left ** right)
  }
}

const maximumBits = 10_000

const bits = (value: number | bigint): number => typeof value === "bigint" ? value.toString(2).length : Math.log2(Math.abs(value) + 1)

/** Python's arithmetic on two numbers; undefined when one is none. */
const arithmetic = (operator: string, left: Value, right: Value, run: Run): Value | undefined => {
  const a = numberOf(left)
  const b = numberOf(right)
  if (a === undefined || b === undefined) return undefined
  if (left instanceof Float || right instanceof Float || operator === "/" || (operator === "**" && b < 0)) {
    return new Float(onFloats(operator, Number(a), Number(b)))
  }
  if ((operator === "//" || operator === "%") && Number(b) === 0) throw new JinjaError("integer division or modulo by zero")
  if (typeof a === "number" && typeof b === "number") {
    const result = onFloats(operator, a, b)
    if (Number.isSafeInteger(result)) return result === 0 ? 0 : result
  }
  if (bits(a) + bits(b) > maximumBits || (operator === "**" && bits(a) * Number(b) > maximumBits)) {
    throw new JinjaError("a number is too large")
  }
  run.step(8)
  return onIntegers(operator, BigInt(a), BigInt(b))
}

const repeat = (left: Value, right: Value, run: Run): Value | undefined => {
  const [subject, times] = typeof right === "number" || typeof right === "boolean" ? [left, Number(right)] : [right, Number(left)]
  const count = Math.max(0, times)
  if (isText(subject)) {
    run.produce(textOf(subject).length * count)
    return typeof subject === "string" ? subject.repeat(count) : join(Array.from({ length: count }, () => subject), "")
  }
  const items = Array.isArray(subject) ? subject : subject instanceof Tuple ? subject.items : undefined
  if (items === undefined) return undefined
  run.step(items.length * count)
  run.produce(items.length * count)
  const repeated = Array.from({ length: count }, () => items).flat()
  return Array.isArray(subject) ? repeated : new Tuple(repeated)
}

const isCount = (value: Value): boolean => typeof value === "number" || typeof value === "boolean"

export const add: Operator = (left, right, run) => {
  if (isText(left) && isText(right)) {
    run.produce(textOf(left).length + textOf(right).length)
    return typeof left === "string" && typeof right === "string" ? left + right : concat(left, right)
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    run.step(left.length + right.length)
    run.produce(left.length + right.length)
    return [...left, ...right]
  }
  if (left instanceof Tuple && right instanceof Tuple) {
    run.step(left.items.length + right.items.length)
    return new Tuple([...left.items, ...right.items])
  }
  const sum = arithmetic("+", left, right, run)
  if (sum === undefined) throw unsupported("+", left, right)
  return sum
}

const multiply: Operator = (left, right, run) => {
  const product = arithmetic("*", left, right, run) ?? (isCount(left) || isCount(right) ? repeat(left, right, run) : undefined)
  if (product === undefined) throw unsupported("*", left, right)
  return product
}

const modulo: Operator = (left, right, run) => {
  if (isText(left)) return percentFormat(left, right, run)
  const rest = arithmetic("%", left, right, run)
  if (rest === undefined) throw unsupported("%", left, right)
  return rest
}

const numeric = (operator: string): Operator => (left, right, run) => {
  const result = arithmetic(operator, left, right, run)
  if (result === undefined) throw unsupported(operator, left, right)
  return result
}

const concatenate: Operator = (left, right, run) => {
  const a = stringOf(left, run)
  const b = stringOf(right, run)
  run.produce(textOf(a).length + textOf(b).length)
  return typeof a === "string" && typeof b === "string" ? a + b : concat(a, b)
}

const operators: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ["+", add],
  ["-", numeric("-")],
  ["*", multiply],
  ["/", numeric("/")],
  ["//", numeric("//")],
  ["%", modulo],
  ["**", numeric("**")],
  ["~", concatenate],
  ["==", isEqual],
  ["!=", (left, right, run) => !isEqual(left, right, run)],
  ["<", (left, right, run) => compare(left, right, "<", run) < 0],
  ["<=", (left, right, run) => compare(left, right, "<=", run) <= 0],
  [">", (left, right, run) => compare(left, right, ">", run) > 0],
  [">=", (left, right, run) => compare(left, right, ">=", run) >= 0],
  ["in", (left, right, run) => contains(right, left, run)],
  ["not in", (left, right, run) => !contains(right, left, run)]
])

/** A binary operator other than `and` and `or`. */
export const operator = (symbol: string): Operator | undefined => operators.get(symbol)

export const negate = (value: Value): Value => {
  if (value instanceof Float) return new Float(-value.value)
  const number = numberOf(value)
  if (number === undefined) {
    throw value instanceof Undefined
      ? undefinedError(value)
      : new JinjaError(`bad operand type for unary -: '${typeName(value)}'`)
  }
  return number === 0 ? 0 : integer(-number)
}
