import * as CodePoints from "../CodePoints.ts"
import { references } from "../GrammarBuilder.ts"
import * as Ir from "../Ir.ts"
import { toNode } from "../RegularNode.ts"
import { without } from "./TextValues.ts"

/** How a grammar can be kept from texts in which a closing tag occurs: it has none, as a whole, each regular part by itself, or not at all. */
export type Exclusion = "needless" | "whole" | "parts" | "impossible"

/** Characters that texts of a node may hold, begin and end with; more than there are where it is not sure. */
interface Characters {
  readonly all: CodePoints.CodePoints
  readonly first: CodePoints.CodePoints
  readonly last: CodePoints.CodePoints
  readonly nullable: boolean
}

const none: Characters = { all: CodePoints.none, first: CodePoints.none, last: CodePoints.none, nullable: false }
const any: Characters = { all: CodePoints.all, first: CodePoints.all, last: CodePoints.all, nullable: true }

const either = (a: Characters, b: Characters): Characters => ({
  all: CodePoints.union(a.all, b.all),
  first: CodePoints.union(a.first, b.first),
  last: CodePoints.union(a.last, b.last),
  nullable: a.nullable || b.nullable
})

const both = (a: Characters, b: Characters): Characters => ({
  all: CodePoints.union(a.all, b.all),
  first: a.nullable ? CodePoints.union(a.first, b.first) : a.first,
  last: b.nullable ? CodePoints.union(a.last, b.last) : b.last,
  nullable: a.nullable && b.nullable
})

const ofPoints = (points: CodePoints.CodePoints): Characters => ({ all: points, first: points, last: points, nullable: false })

const point = (character: string): CodePoints.CodePoints => CodePoints.among(character)

const ofText = (text: string): Characters => {
  const characters = Array.from(text.toWellFormed())
  const [first = ""] = characters
  return { all: point(text.toWellFormed()), first: point(first), last: point(characters.at(-1) ?? ""), nullable: text === "" }
}

/** Looks for the ways in which a closing tag may come into the texts of a grammar. */
export class CloserFree {
  readonly #rules: ReadonlyMap<string, Ir.Node>
  readonly #closer: ReadonlyArray<string>
  /** Rules that lead back to themselves, or to one that does. */
  readonly #irregular: ReadonlySet<string>
  readonly #regular = new Map<Ir.Node, boolean>()
  readonly #characters = new Map<Ir.Node, Characters>()
  readonly #parts = new Set<Ir.Node>()

  constructor(grammar: Ir.Grammar, closer: string) {
    this.#rules = new Map(grammar.rules.map(({ name, node }) => [name, node]))
    this.#closer = Array.from(closer)
    this.#irregular = irregularRules(this.#rules)
    for (const { node } of grammar.rules) this.#collect(node, new Set())
  }

  get exclusion(): Exclusion {
    const { all, first, last } = [...this.#parts].map((part) => this.#of(part)).reduce(either, none)
    const holds = (points: CodePoints.CodePoints, index: number) => CodePoints.has(points, this.#closer[index]?.codePointAt(0) ?? 0)
    if (!this.#closer.every((_, index) => holds(all, index))) return "needless"
    if (this.#irregular.size === 0) return "whole"
    // It may begin in one part and go on in another.
    return this.#closer.some((_, index) => index > 0 && holds(last, index - 1) && holds(first, index)) ? "impossible" : "parts"
  }

  /** Whether the texts of a node are a regular language. */
  isRegular(node: Ir.Node): boolean {
    let regular = this.#regular.get(node)
    if (regular === undefined) {
      regular = node.kind === "rule" ? !this.#irregular.has(node.name) : Ir.childrenOf(node).every((item) => this.isRegular(item))
      this.#regular.set(node, regular)
    }
    return regular
  }

  /** The largest regular nodes. */
  #collect(node: Ir.Node, seen: Set<Ir.Node>): void {
    if (seen.has(node)) return
    seen.add(node)
    if (this.isRegular(node)) this.#parts.add(node)
    else for (const item of Ir.childrenOf(node)) this.#collect(item, seen)
  }

  #of(node: Ir.Node): Characters {
    let known = this.#characters.get(node)
    if (known === undefined) this.#characters.set(node, known = this.#look(node))
    return known
  }

  #look(node: Ir.Node): Characters {
    switch (node.kind) {
      case "text":
        return ofText(node.value)
      case "class": {
        const points = CodePoints.of(...node.ranges)
        return ofPoints(node.negated === true ? CodePoints.complement(points) : points)
      }
      case "sequence":
        return node.items.map((item) => this.#of(item)).reduce(both, ofText(""))
      case "choice":
        return node.items.map((item) => this.#of(item)).reduce(either, none)
      case "repeat": {
        const own = this.#of(node.item)
        return node.min === 0 ? { ...own, nullable: true } : own
      }
      case "lexeme":
      case "content":
        return this.#of(node.item)
      case "rule": {
        const own = this.#rules.get(node.name)
        return own === undefined ? none : this.#of(own)
      }
      default:
        return any
    }
  }
}

/** Rules that need no others first, then those that need only them; what is left is irregular. */
const irregularRules = (rules: ReadonlyMap<string, Ir.Node>): ReadonlySet<string> => {
  const open = new Map([...rules].map(([name, node]) => [name, references(node)] as const))
  const users = new Map<string, Array<string>>()
  for (const [name, others] of open) {
    for (const other of others) {
      const known = users.get(other)
      if (known === undefined) users.set(other, [name])
      else known.push(name)
    }
  }
  const left = new Map([...open].map(([name, others]) => [name, others.size]))
  const regular = new Set([...left].flatMap(([name, count]) => count === 0 ? [name] : []))
  for (const name of regular) {
    for (const user of users.get(name) ?? []) {
      const count = (left.get(user) ?? 0) - 1
      left.set(user, count)
      if (count === 0) regular.add(user)
    }
  }
  return new Set([...rules.keys()].filter((name) => !regular.has(name)))
}

/** What the node matches, and no closer in it. */
export const closerFree = (node: Ir.Node, closer: string): Ir.Node => ({
  kind: "lexeme",
  item: { kind: "and", items: [node, toNode(without(closer))] }
})
