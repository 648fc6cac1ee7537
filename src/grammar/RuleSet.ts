import type { Budget } from "./Budget.ts"
import type { GrammarBuilder } from "./GrammarBuilder.ts"
import * as Ir from "./Ir.ts"
import type { TextCursor } from "./TextCursor.ts"

interface Definition {
  readonly node: Ir.Node
  readonly offset: number
}

/** The rules of a grammar's text, by their own names; they get names of the builder when all are known. */
export class RuleSet {
  readonly #cursor: TextCursor
  readonly #builder: GrammarBuilder
  readonly #names = new Map<string, string>()
  readonly #uses = new Map<string, number>()
  readonly #definitions = new Map<string, Definition>()

  constructor(cursor: TextCursor, builder: GrammarBuilder) {
    this.#cursor = cursor
    this.#builder = builder
  }

  has(name: string): boolean {
    return this.#definitions.has(name)
  }

  define(name: string, node: Ir.Node, offset: number): void {
    this.#builder.budget.step()
    if (this.has(name)) this.#cursor.fail("Invalid", `${name} is defined twice`, offset)
    this.#definitions.set(name, { node, offset })
  }

  reference(name: string, offset: number): Ir.Node {
    this.#builder.budget.step()
    if (!this.#uses.has(name)) this.#uses.set(name, offset)
    return Ir.rule(this.#nameOf(name))
  }

  /** A rule of the text's own that it does not name. */
  anonymous(node: Ir.Node): Ir.Node {
    const name = this.#builder.fresh("part")
    this.#builder.define(name, node)
    return Ir.rule(name)
  }

  /** @throws GrammarError for a name without a rule and for left recursion that cannot be rewritten. */
  finish(): void {
    for (const [name, offset] of this.#uses) {
      if (!this.has(name)) this.#cursor.fail("Invalid", `${name} is not defined`, offset)
    }
    const nodes = new Map([...this.#definitions].map(([name, { node }]) => [this.#nameOf(name), withoutDirect(this.#nameOf(name), node)]))
    const recursive = leftRecursive(nodes, this.#builder.budget)
    for (const [name, { offset }] of this.#definitions) {
      if (recursive.has(this.#nameOf(name))) this.#cursor.fail("Unsupported", `${name} begins with itself, through other rules`, offset)
    }
    for (const [name, node] of nodes) this.#builder.define(name, node)
  }

  #nameOf(name: string): string {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    const made = this.#builder.fresh(name)
    this.#names.set(name, made)
    return made
  }
}

/** `a = a x | y` as `a = y x*`. */
const withoutDirect = (name: string, node: Ir.Node): Ir.Node => {
  const branches = node.kind === "choice" ? node.items : [node]
  const tails: Array<Ir.Node> = []
  const heads: Array<Ir.Node> = []
  for (const branch of branches) {
    const [first, ...rest] = branch.kind === "sequence" ? branch.items : [branch]
    if (first?.kind === "rule" && first.name === name) {
      if (rest.length > 0) tails.push(Ir.sequence(...rest))
    } else heads.push(branch)
  }
  return tails.length === 0 && heads.length === branches.length ? node : Ir.sequence(Ir.choice(...heads), Ir.repeat(Ir.choice(...tails)))
}

/** The rules that can derive themselves before any character: those on a cycle of what rules begin with. */
const leftRecursive = (rules: ReadonlyMap<string, Ir.Node>, budget: Budget): ReadonlySet<string> => {
  const nullable = new Set<string>()
  for (let size = -1; size !== nullable.size;) {
    size = nullable.size
    for (const [name, node] of rules) if (!nullable.has(name) && isNullable(node, nullable, budget)) nullable.add(name)
  }
  const firsts = new Map([...rules].map(([name, node]) => [name, firstRules(node, nullable, budget)]))
  return cyclic(firsts, budget)
}

/** The nodes of a graph that lie on a cycle, by Tarjan's strongly connected components. */
const cyclic = (edges: ReadonlyMap<string, ReadonlyArray<string>>, budget: Budget): ReadonlySet<string> => {
  const found = new Set<string>()
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: Array<string> = []
  const isOpen = new Set<string>()
  const low = (name: string) => lowest.get(name) ?? Infinity
  const enter = (name: string) => {
    order.set(name, order.size)
    lowest.set(name, order.size - 1)
    open.push(name)
    isOpen.add(name)
    return { name, next: 0 }
  }
  for (const root of edges.keys()) {
    if (order.has(root)) continue
    const path = [enter(root)]
    for (let place = path.at(-1); place !== undefined; place = path.at(-1)) {
      budget.step()
      const { name } = place
      const target = edges.get(name)?.[place.next++]
      if (target !== undefined) {
        if (!order.has(target)) path.push(enter(target))
        else if (isOpen.has(target)) {
          lowest.set(name, Math.min(low(name), order.get(target) ?? Infinity))
          if (target === name) found.add(name)
        }
        continue
      }
      path.pop()
      const above = path.at(-1)
      if (above !== undefined) lowest.set(above.name, Math.min(low(above.name), low(name)))
      if (low(name) !== order.get(name)) continue
      const component = open.splice(open.lastIndexOf(name))
      for (const member of component) {
        isOpen.delete(member)
        if (component.length > 1) found.add(member)
      }
    }
  }
  return found
}

const isNullable = (node: Ir.Node, rules: ReadonlySet<string>, budget: Budget): boolean => {
  budget.step()
  switch (node.kind) {
    case "text":
      return node.value === ""
    case "sequence":
      return node.items.every((item) => isNullable(item, rules, budget))
    case "choice":
      return node.items.some((item) => isNullable(item, rules, budget))
    case "repeat":
      return node.min === 0 || isNullable(node.item, rules, budget)
    case "rule":
      return rules.has(node.name)
    case "lexeme":
    case "content":
      return isNullable(node.item, rules, budget)
    default:
      return false
  }
}

const firstRules = (node: Ir.Node, nullable: ReadonlySet<string>, budget: Budget): ReadonlyArray<string> => {
  budget.step()
  switch (node.kind) {
    case "sequence": {
      const end = node.items.findIndex((item) => !isNullable(item, nullable, budget))
      return node.items.slice(0, end < 0 ? undefined : end + 1).flatMap((item) => firstRules(item, nullable, budget))
    }
    case "choice":
      return node.items.flatMap((item) => firstRules(item, nullable, budget))
    case "repeat":
    case "lexeme":
    case "content":
      return firstRules(node.item, nullable, budget)
    case "rule":
      return [node.name]
    default:
      return []
  }
}
