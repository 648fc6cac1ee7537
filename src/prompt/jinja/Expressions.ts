import { Arguments } from "./Arguments.ts"
import { attribute, sliceOf, subscript } from "./Attributes.ts"
import type { Filter } from "./Filter.ts"
import { filter } from "./Filters.ts"
import { isText, textOf } from "./MarkedText.ts"
import { negate, operator } from "./Operators.ts"
import { iterate, numberOf } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import type { Scope } from "./Scope.ts"
import { type Call, type Identifier, negatedTestPrefix, type Node, testPrefix, tupleFilter } from "./Syntax.ts"
import { test } from "./Tests.ts"
import {
  Callable,
  Dict,
  Float,
  integer,
  isTrue,
  JinjaError,
  type Keywords,
  Tuple,
  typeName,
  Undefined,
  undefinedError,
  type Value
} from "./Values.ts"

export type Expression = (scope: Scope) => Value

const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null]
])

interface CompiledArguments {
  readonly positional: (scope: Scope) => Array<Value>
  readonly keywords: (scope: Scope) => Map<string, Value>
}

const noKeywords: Keywords = new Map()

/** Arguments of a call, with `*` and `**`. */
export const compileArguments = (nodes: ReadonlyArray<Node>): CompiledArguments => {
  const positional: Array<(scope: Scope, into: Array<Value>) => void> = []
  const keywords: Array<(scope: Scope, into: Map<string, Value>) => void> = []
  for (const node of nodes) {
    if (node.type === "KeywordArgumentExpression") {
      const value = compile(node.value)
      keywords.push((scope, into) => into.set(node.key.value, value(scope)))
    } else if (node.type === "SpreadExpression") {
      const value = compile(node.argument)
      positional.push((scope, into) => {
        for (const item of iterate(value(scope), scope.run)) into.push(item)
      })
    } else if (node.type === "KeywordSpreadExpression") {
      const value = compile(node.argument)
      keywords.push((scope, into) => {
        const mapping = value(scope)
        if (!(mapping instanceof Dict)) throw new JinjaError("argument after ** must be a mapping")
        for (const item of mapping.items()) into.set(textOf(stringOf(item.items[0] ?? null, scope.run)), item.items[1] ?? null)
      })
    } else {
      const value = compile(node)
      positional.push((scope, into) => into.push(value(scope)))
    }
  }
  return {
    positional: (scope) => {
      const into: Array<Value> = []
      for (const add of positional) add(scope, into)
      return into
    },
    keywords: (scope) => {
      const into = new Map<string, Value>()
      for (const add of keywords) add(scope, into)
      return into
    }
  }
}

export const call = (scope: Scope, callee: Value, args: ReadonlyArray<Value>, keywords: Keywords = noKeywords): Value => {
  if (callee instanceof Undefined) throw undefinedError(callee)
  if (!(callee instanceof Callable)) throw new JinjaError(`'${typeName(callee)}' object is not callable`)
  scope.run.step()
  return callee.invoke(scope.run, args, keywords)
}

const compileTest = (name: string, negated: boolean, operand: Expression, args: CompiledArguments | undefined): Expression => {
  const applied = test(name)
  if (applied === undefined) return unknown(`No test named '${name}'.`)
  return (scope) => {
    const value = operand(scope)
    scope.run.step()
    return applied(scope.run, value, args?.positional(scope) ?? []) !== negated
  }
}

/** Jinja reports an unknown filter or test when the branch runs that uses it. */
const unknown = (message: string): Expression => () => {
  throw new JinjaError(message)
}

/** `value|name(arguments)`. */
export const compileFilter = (node: Identifier | Call, operand: Expression): Expression => {
  const callee = node.type === "CallExpression" ? node.callee : node
  if (callee.type !== "Identifier") throw new JinjaError("a filter is a name")
  const name = callee.value
  const args = node.type === "CallExpression" ? compileArguments(node.args) : undefined
  if (name === tupleFilter) return (scope) => new Tuple(iterate(operand(scope), scope.run))
  if (name.startsWith(negatedTestPrefix)) return compileTest(name.slice(negatedTestPrefix.length), true, operand, args)
  if (name.startsWith(testPrefix)) return compileTest(name.slice(testPrefix.length), false, operand, args)
  const applied: Filter | undefined = filter(name)
  if (applied === undefined) return unknown(`No filter named '${name}'.`)
  if (args === undefined) {
    const none = new Arguments(name, [], noKeywords)
    return (scope) => applied(scope.run, operand(scope), none)
  }
  return (scope) => applied(scope.run, operand(scope), new Arguments(name, args.positional(scope), args.keywords(scope)))
}

const compileBinary = (symbol: string, left: Expression, right: Expression): Expression => {
  if (symbol === "and") {
    return (scope) => {
      const value = left(scope)
      return isTrue(value) ? right(scope) : value
    }
  }
  if (symbol === "or") {
    return (scope) => {
      const value = left(scope)
      return isTrue(value) ? value : right(scope)
    }
  }
  const apply = operator(symbol)
  if (apply === undefined) throw new JinjaError(`unknown operator '${symbol}'`)
  return (scope) => {
    scope.run.step()
    return apply(left(scope), right(scope), scope.run)
  }
}

const compileUnary = (symbol: string, argument: Expression): Expression => {
  if (symbol === "not") return (scope) => !isTrue(argument(scope))
  if (symbol === "-") return (scope) => negate(argument(scope))
  return (scope) => {
    const value = argument(scope)
    if (numberOf(value) === undefined) throw new JinjaError(`bad operand type for unary +: '${typeName(value)}'`)
    return value
  }
}

const compileMember = (node: Extract<Node, { type: "MemberExpression" }>): Expression => {
  const object = compile(node.object)
  const { property } = node
  if (property.type === "SliceExpression") {
    const bounds = [property.start, property.stop, property.step].map((bound) => bound === undefined ? undefined : compile(bound))
    return (scope) => sliceOf(object(scope), bounds.map((bound) => bound?.(scope) ?? null), scope.run)
  }
  if (node.computed) {
    const key = compile(property)
    return (scope) => {
      const target = object(scope)
      scope.run.step(isText(target) ? 1 + (textOf(target).length >> 6) : 1)
      return subscript(target, key(scope))
    }
  }
  if (property.type === "Identifier") {
    return (scope) => {
      scope.run.step()
      return attribute(object(scope), property.value)
    }
  }
  if (property.type !== "IntegerLiteral") throw new JinjaError("expected a name or a number after the dot")
  return (scope) => subscript(object(scope), property.value)
}

/** Compiles an expression to a function of the scope. */
export const compile = (node: Node): Expression => {
  switch (node.type) {
    case "Identifier": {
      const constant = constants.get(node.value)
      if (constant !== undefined) return () => constant
      const { value } = node
      return (scope) => scope.get(value)
    }
    case "StringLiteral": {
      const { value } = node
      return () => value
    }
    case "IntegerLiteral": {
      const value = integer(node.value)
      return () => value
    }
    case "FloatLiteral": {
      const value = new Float(node.value)
      return () => value
    }
    case "ArrayLiteral": {
      const items = node.value.map(compile)
      return (scope) => {
        scope.run.step(items.length)
        return items.map((item) => item(scope))
      }
    }
    case "TupleLiteral": {
      const items = node.value.map(compile)
      return (scope) => new Tuple(items.map((item) => item(scope)))
    }
    case "ObjectLiteral": {
      const entries = Array.from(node.value, ([key, value]) => [compile(key), compile(value)] as const)
      return (scope) => {
        const dict = new Dict()
        scope.run.step(entries.length)
        for (const [key, value] of entries) dict.set(key(scope), value(scope))
        return dict
      }
    }
    case "MemberExpression":
      return compileMember(node)
    case "CallExpression": {
      const callee = compile(node.callee)
      const args = compileArguments(node.args)
      return (scope) => call(scope, callee(scope), args.positional(scope), args.keywords(scope))
    }
    case "BinaryExpression":
      return compileBinary(node.operator.value, compile(node.left), compile(node.right))
    case "UnaryExpression":
      return compileUnary(node.operator.value, compile(node.argument))
    case "FilterExpression":
      return compileFilter(node.filter, compile(node.operand))
    case "TestExpression":
      return compileTest(node.test.value, node.negate, compile(node.operand), undefined)
    case "SelectExpression": {
      const value = compile(node.lhs)
      const condition = compile(node.test)
      return (scope) => isTrue(condition(scope)) ? value(scope) : new Undefined("the inline if-expression has no else section")
    }
    case "Ternary": {
      const condition = compile(node.condition)
      const whenTrue = compile(node.trueExpr)
      const whenFalse = compile(node.falseExpr)
      return (scope) => isTrue(condition(scope)) ? whenTrue(scope) : whenFalse(scope)
    }
    default:
      throw new JinjaError(`${node.type} is not an expression`)
  }
}
