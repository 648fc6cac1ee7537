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
    if (this.has(name)) this.#cursor.fail("Invalid", `${name} is defined twice`, offset)
    this.#definitions.set(name, { node, offset })
  }

  reference(name: string, offset: number): Ir.Node {
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
    const recursive = leftRecursive(nodes)
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

/** The rules that can derive themselves before any character. */
const leftRecursive = (rules: ReadonlyMap<string, Ir.Node>): ReadonlySet<string> => {
  const nullable = new Set<string>()
  for (let size = -1; size !== nullable.size;) {
    size = nullable.size
    for (const [name, node] of rules) if (isNullable(node, nullable)) nullable.add(name)
  }
  const firsts = new Map([...rules].map(([name, node]) => [name, firstRules(node, nullable)]))
  const recursive = new Set<string>()
  for (const name of rules.keys()) {
    const seen = new Set<string>()
    const pending = [...firsts.get(name) ?? []]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (seen.has(next)) continue
      seen.add(next)
      pending.push(...firsts.get(next) ?? [])
    }
    if (seen.has(name)) recursive.add(name)
  }
  return recursive
}

const isNullable = (node: Ir.Node, rules: ReadonlySet<string>): boolean => {
  switch (node.kind) {
    case "text":
      return node.value === ""
    case "sequence":
      return node.items.every((item) => isNullable(item, rules))
    case "choice":
      return node.items.some((item) => isNullable(item, rules))
    case "repeat":
      return node.min === 0 || isNullable(node.item, rules)
    case "rule":
      return rules.has(node.name)
    case "lexeme":
    case "content":
      return isNullable(node.item, rules)
    default:
      return false
  }
}

const firstRules = (node: Ir.Node, nullable: ReadonlySet<string>): ReadonlyArray<string> => {
  switch (node.kind) {
    case "sequence": {
      const end = node.items.findIndex((item) => !isNullable(item, nullable))
      return node.items.slice(0, end < 0 ? undefined : end + 1).flatMap((item) => firstRules(item, nullable))
    }
    case "choice":
      return node.items.flatMap((item) => firstRules(item, nullable))
    case "repeat":
    case "lexeme":
    case "content":
      return firstRules(node.item, nullable)
    case "rule":
      return [node.name]
    default:
      return []
  }
}
