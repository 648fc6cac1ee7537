import { Budget } from "./Budget.ts"
import { GrammarError } from "./GrammarError.ts"
import * as Ir from "./Ir.ts"

/** Collects the rules of one grammar, for one front end or several, which share the time that it may take. */
export class GrammarBuilder {
  readonly budget: Budget
  readonly #rules = new Map<string, Ir.Node>()
  readonly #names = new Map<string, number>()

  constructor(budget = new Budget()) {
    this.budget = budget
  }

  /** A name that no rule has, like `base`. */
  fresh(base: string): string {
    const count = this.#names.get(base) ?? 0
    this.#names.set(base, count + 1)
    return count === 0 ? base : `${base}-${count}`
  }

  define(name: string, node: Ir.Node): void {
    this.#rules.set(name, node)
  }

  /**
   * The grammar with this root. Branches that no text can end are left out, so that a generation never enters one.
   *
   * @throws GrammarError when no text is in the language at all.
   */
  finish(root: Ir.Node, what: string): Ir.Grammar {
    const name = root.kind === "rule" ? root.name : this.fresh("root")
    if (root.kind !== "rule") this.define(name, root)
    const productive = this.#productive()
    if (!productive.has(name)) {
      throw new GrammarError({ reason: "Unsatisfiable", message: `the ${what} allows no text at all`, path: "" })
    }
    const pruner = new Pruner(productive, this.budget)
    const rules: Array<Ir.Rule> = []
    const seen = new Set([name])
    for (const rule of seen) {
      const node = this.#rules.get(rule)
      if (node === undefined) continue
      const kept = pruner.prune(node) ?? nothing
      rules.push({ name: rule, node: kept })
      for (const reference of references(kept)) seen.add(reference)
    }
    return { root: name, rules }
  }

  /** The rules from which some text can be derived. */
  #productive(): Productive {
    const productive = new Productive(this.budget)
    const users = new Map<string, Set<string>>()
    for (const [name, node] of this.#rules) {
      this.budget.step()
      for (const reference of references(node)) {
        const own = users.get(reference)
        if (own === undefined) users.set(reference, new Set([name]))
        else own.add(name)
      }
    }
    const pending = [...this.#rules.keys()]
    const waiting = new Set(pending)
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      waiting.delete(name)
      const node = this.#rules.get(name)
      if (node === undefined || productive.has(name) || !productive.derives(node)) continue
      productive.add(name)
      for (const user of users.get(name) ?? []) {
        if (!productive.has(user) && !waiting.has(user)) {
          waiting.add(user)
          pending.push(user)
        }
      }
    }
    return productive
  }
}

const nothing: Ir.Node = Ir.choice()

/** The names of the rules in a node. */
export const references = (root: Ir.Node): ReadonlySet<string> => {
  const names = new Set<string>()
  const seen = new Set<Ir.Node>()
  const pending = [root]
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    if (node.kind === "rule") names.add(node.name)
    else pending.push(...Ir.childrenOf(node))
  }
  return names
}

/** The rules that derive some text, as far as they are known. */
class Productive {
  readonly #budget: Budget
  readonly #rules = new Set<string>()
  /** Nodes that were seen to derive a text: they still do when more rules are known. */
  readonly #nodes = new Set<Ir.Node>()

  constructor(budget: Budget) {
    this.#budget = budget
  }

  has(rule: string): boolean {
    return this.#rules.has(rule)
  }

  add(rule: string): void {
    this.#rules.add(rule)
  }

  derives(node: Ir.Node): boolean {
    this.#budget.step()
    if (this.#nodes.has(node)) return true
    const derives = this.#look(node)
    if (derives) this.#nodes.add(node)
    return derives
  }

  #look(node: Ir.Node): boolean {
    switch (node.kind) {
      case "class":
        return node.negated === true || node.ranges.length > 0
      case "sequence":
      case "and":
        return node.items.every((item) => this.derives(item))
      case "choice":
        return node.items.some((item) => this.derives(item))
      case "repeat":
        return node.min === 0 || this.derives(node.item)
      case "rule":
        return this.#rules.has(node.name)
      case "lexeme":
      case "content":
        return this.derives(node.item)
      case "permutation": {
        if (node.items.some((item) => item.required === true && !this.derives(item.node))) return false
        const own = node.items.filter((item) => this.derives(item.node))
        const most = own.some((item) => item.many === true) ? Infinity : own.length
        return (node.min ?? 0) <= Math.min(most, node.max ?? Infinity) &&
          own.filter((item) => item.required === true).length <= (node.max ?? Infinity)
      }
      default:
        return true
    }
  }
}

/** Takes out what derives nothing; nodes that stay whole stay the same objects. */
class Pruner {
  readonly #productive: Productive
  readonly #budget: Budget
  readonly #made = new Map<Ir.Node, Ir.Node | undefined>()

  constructor(productive: Productive, budget: Budget) {
    this.#productive = productive
    this.#budget = budget
  }

  prune(node: Ir.Node): Ir.Node | undefined {
    this.#budget.step()
    if (this.#made.has(node)) return this.#made.get(node)
    const kept = this.#productive.derives(node) ? this.#kept(node) : undefined
    this.#made.set(node, kept)
    return kept
  }

  #kept(node: Ir.Node): Ir.Node {
    switch (node.kind) {
      case "sequence":
      case "choice": {
        const items = this.#all(node.items)
        return items === node.items ? node : { ...node, items }
      }
      case "repeat": {
        const item = this.prune(node.item)
        return item === node.item ? node : item === undefined ? Ir.text("") : { ...node, item }
      }
      case "content": {
        const item = this.prune(node.item)
        return item === node.item || item === undefined ? node : { ...node, item }
      }
      case "permutation": {
        const items = node.items.flatMap((item) => {
          const kept = this.prune(item.node)
          return kept === item.node ? [item] : kept === undefined ? [] : [{ ...item, node: kept }]
        })
        return items.every((item, index) => item === node.items[index]) && items.length === node.items.length ? node : { ...node, items }
      }
      default:
        return node
    }
  }

  #all(items: ReadonlyArray<Ir.Node>): ReadonlyArray<Ir.Node> {
    const kept = items.flatMap((item) => this.prune(item) ?? [])
    return kept.length === items.length && kept.every((item, index) => item === items[index]) ? items : kept
  }
}
