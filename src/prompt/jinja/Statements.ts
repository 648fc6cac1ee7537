import { unpack } from "./Attributes.ts"
import { call, compile, compileArguments, compileFilter, type Expression } from "./Expressions.ts"
import { Loop } from "./Loop.ts"
import { type Text, TextBuilder, textOf } from "./MarkedText.ts"
import { iterate } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import type { Scope } from "./Scope.ts"
import { type Node, withVariable } from "./Syntax.ts"
import { Callable, Dict, isTrue, JinjaError, type Keywords, Namespace, Tuple, Undefined, type Value } from "./Values.ts"

/** How a statement ended: normally, or by `break` or `continue`. */
type Outcome = "done" | "break" | "continue"
type Statement = (scope: Scope, out: TextBuilder) => Outcome

export const compileBlock = (nodes: ReadonlyArray<Node>): Statement => {
  const statements = nodes.filter((node) => node.type !== "Comment").map(compileStatement)
  return (scope, out) => {
    for (const statement of statements) {
      const outcome = statement(scope, out)
      if (outcome !== "done") return outcome
    }
    return "done"
  }
}

const print = (expression: Expression): Statement => (scope, out) => {
  scope.run.step()
  const text = stringOf(expression(scope), scope.run)
  scope.run.produce(textOf(text).length)
  out.push(text)
  return "done"
}

/** Text of a block that is a value: a macro, `set … endset`, `filter`, `call`. */
const rendered = (block: Statement, scope: Scope): Text => {
  const out = new TextBuilder()
  block(scope, out)
  return out.finish()
}

type Assign = (scope: Scope, value: Value) => void

const compileTarget = (node: Node): Assign => {
  if (node.type === "Identifier") return (scope, value) => scope.set(node.value, value)
  if (node.type === "TupleLiteral") {
    const targets = node.value.map(compileTarget)
    return (scope, value) => {
      const items = unpack(value, targets.length, scope.run)
      targets.forEach((assign, index) => assign(scope, items[index] ?? null))
    }
  }
  if (node.type === "MemberExpression" && node.property.type === "Identifier" && !node.computed) {
    const object = compile(node.object)
    const { value: name } = node.property
    return (scope, value) => {
      const target = object(scope)
      if (!(target instanceof Namespace)) throw new JinjaError("cannot assign attribute on non-namespace object")
      target.entries.set(name, value)
    }
  }
  throw new JinjaError(`cannot assign to ${node.type}`)
}

const compileSet = (node: Extract<Node, { type: "Set" }>): Statement => {
  const filtered = node.assignee.type === "FilterExpression" ? node.assignee : undefined
  const assign = compileTarget(filtered?.operand ?? node.assignee)
  if (node.value !== null) {
    const value = compile(node.value)
    return (scope) => {
      scope.run.step()
      assign(scope, value(scope))
      return "done"
    }
  }
  const block = compileBlock(node.body)
  const captured: Expression = (scope) => rendered(block, scope.child())
  const value = filtered === undefined ? captured : compileFilter(filtered.filter, captured)
  return (scope) => {
    assign(scope, value(scope))
    return "done"
  }
}

const compileIf = (node: Extract<Node, { type: "If" }>): Statement => {
  const condition = compile(node.test)
  const whenTrue = compileBlock(node.body)
  const whenFalse = compileBlock(node.alternate)
  return (scope, out) => {
    scope.run.step()
    return isTrue(condition(scope)) ? whenTrue(scope, out) : whenFalse(scope, out)
  }
}

const compileFor = (node: Extract<Node, { type: "For" }>): Statement => {
  if (node.loopvar.type === "Identifier" && node.loopvar.value === withVariable) return compileWith(node)
  const select = node.iterable.type === "SelectExpression" ? node.iterable : undefined
  const iterable = compile(select?.lhs ?? node.iterable)
  const condition = select === undefined ? undefined : compile(select.test)
  const assign = compileTarget(node.loopvar)
  const body = compileBlock(node.body)
  const otherwise = compileBlock(node.defaultBlock)
  const iterateOver = (source: Value, scope: Scope, out: TextBuilder, depth: number): Outcome => {
    let items = iterate(source, scope.run)
    if (condition !== undefined) {
      items = items.filter((item) => {
        const inner = scope.child()
        assign(inner, item)
        return isTrue(condition(inner))
      })
    }
    const loop = new Loop(items, depth, (again) => {
      const nested = new TextBuilder()
      scope.run.enter()
      iterateOver(again, scope, nested, depth + 1)
      scope.run.leave()
      return nested.finish()
    })
    let completed = false
    for (; loop.index < items.length; loop.index++) {
      scope.run.step()
      const inner = scope.child()
      inner.set("loop", loop.value)
      assign(inner, items[loop.index] ?? null)
      const outcome = body(inner, out)
      if (outcome === "break") break
      if (outcome === "done") completed = true
    }
    // Jinja's own rule: the else block runs unless an iteration got to its end
    return completed ? "done" : otherwise(scope.child(), out)
  }
  return (scope, out) => iterateOver(iterable(scope), scope, out, 0)
}

const compileWith = (node: Extract<Node, { type: "For" }>): Statement => {
  const variables = compile(node.iterable)
  const body = compileBlock(node.body)
  return (scope, out) => {
    const values = variables(scope)
    const inner = scope.child()
    if (values instanceof Dict) { for (const [name, value] of values.entries) inner.set(String(name), value) }
    return body(inner, out)
  }
}

/** Whether any node below mentions the name. */
const mentions = (node: unknown, name: string): boolean => {
  if (Array.isArray(node)) return node.some((item) => mentions(item, name))
  if (node instanceof Map) return Array.from(node).some((entry) => mentions(entry, name))
  if (typeof node !== "object" || node === null) return false
  if ("type" in node && node.type === "Identifier" && "value" in node && node.value === name) return true
  return Object.values(node).some((child) => mentions(child, name))
}

/** A macro or the body of a call block, as a function of the scope that defines it. */
const compileMacro = (name: string, parameters: ReadonlyArray<Node>, nodes: ReadonlyArray<Node>): (scope: Scope) => Callable => {
  const targets = parameters.map((parameter) => {
    if (parameter.type === "Identifier") return { name: parameter.value, fallback: undefined }
    if (parameter.type === "KeywordArgumentExpression") return { name: parameter.key.value, fallback: compile(parameter.value) }
    throw new JinjaError("a macro's parameters are names")
  })
  const [takesCaller, takesKeywords, takesMore] = ["caller", "kwargs", "varargs"].map((special) =>
    mentions(nodes, special) || mentions(parameters, special)
  )
  const body = compileBlock(nodes)
  const bind = (scope: Scope, args: ReadonlyArray<Value>, keywords: Keywords) => {
    const rest = new Map(keywords)
    const defaults: Array<() => void> = []
    targets.forEach((target, index) => {
      const value = index < args.length ? args[index] : rest.get(target.name)
      if (index >= args.length) rest.delete(target.name)
      if (value !== undefined) scope.set(target.name, value)
      else {
        scope.set(target.name, new Undefined(`parameter '${target.name}' was not provided`))
        const { fallback } = target
        if (fallback !== undefined) defaults.push(() => scope.set(target.name, fallback(scope)))
      }
    })
    if (takesCaller === true) {
      scope.set("caller", rest.get("caller") ?? new Undefined("No caller defined"))
      rest.delete("caller")
    }
    if (takesKeywords === true) scope.set("kwargs", new Dict(rest))
    else for (const keyword of rest.keys()) throw new JinjaError(`macro '${name}' takes no keyword argument '${keyword}'`)
    if (takesMore === true) scope.set("varargs", new Tuple(args.slice(targets.length)))
    else if (args.length > targets.length) throw new JinjaError(`macro '${name}' takes not more than ${targets.length} argument(s)`)
    for (const fill of defaults) fill()
  }
  return (scope) =>
    new Callable(name, (run, args, keywords) => {
      run.enter()
      const inner = scope.child()
      bind(inner, args, keywords)
      const text = rendered(body, inner)
      run.leave()
      return text
    }, (attributeName) => attributeName === "name" ? name : undefined)
}

const compileCallBlock = (node: Extract<Node, { type: "CallStatement" }>): Statement => {
  const caller = compileMacro("caller", node.callerArgs ?? [], node.body)
  const callee = compile(node.call.callee)
  const args = compileArguments(node.call.args)
  return print((scope) => call(scope, callee(scope), args.positional(scope), args.keywords(scope).set("caller", caller(scope))))
}

const compileStatement = (node: Node): Statement => {
  switch (node.type) {
    case "StringLiteral": {
      const { value } = node
      return (scope, out) => {
        scope.run.produce(value.length)
        out.push(value)
        return "done"
      }
    }
    case "If":
      return compileIf(node)
    case "For":
      return compileFor(node)
    case "Set":
      return compileSet(node)
    case "Break":
      return () => "break"
    case "Continue":
      return () => "continue"
    case "Macro": {
      const macro = compileMacro(node.name.value, node.args, node.body)
      return (scope) => {
        scope.set(node.name.value, macro(scope))
        return "done"
      }
    }
    case "CallStatement":
      return compileCallBlock(node)
    case "FilterStatement": {
      const block = compileBlock(node.body)
      return print(compileFilter(node.filter, (scope) => rendered(block, scope.child())))
    }
    default:
      return print(compile(node))
  }
}
