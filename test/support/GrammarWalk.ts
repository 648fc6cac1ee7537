import * as CodePoints from "../../src/grammar/CodePoints.ts"
import * as Derivatives from "../../src/grammar/Derivatives.ts"
import type { Free, Grammar, Node, Permutation } from "../../src/grammar/Ir.ts"
import * as Regular from "../../src/grammar/Regular.ts"

/** Characters that make trouble, tried where a class has them. */
const favourites = Array.from("a0 \"\\\n\t-z/é漢😀\u0000\u2028", (character) => character.codePointAt(0) ?? 0)

/** A random text of a grammar's language. Long branches are left as soon as the text is long. */
export class GrammarWalk {
  readonly #rules: ReadonlyMap<string, Node>
  readonly #root: string
  readonly #next: () => number
  readonly #costs = new Map<Node, number>()
  readonly #languages = new Map<Node, Regular.Regular>()
  readonly #steps = new Map<Regular.Regular, Steps>()
  /** One language for each key; of those that are empty, none. */
  readonly #known = new Map<string, Regular.Regular | undefined>()
  #length = 0

  constructor(grammar: Grammar, next: () => number) {
    this.#rules = new Map(grammar.rules.map(({ name, node }) => [name, node]))
    this.#root = grammar.root
    this.#next = next
    this.#measure()
  }

  text(): string {
    this.#length = 0
    return this.#walk(this.#rule(this.#root))
  }

  /** Of a grammar that is regular. */
  language(): Regular.Regular {
    return this.toRegular(this.#rule(this.#root))
  }

  #rule(name: string): Node {
    const node = this.#rules.get(name)
    if (node === undefined) throw new Error(`no rule ${name} in the grammar`)
    return node
  }

  /** The steps of the shortest derivation of every rule. */
  #measure(): void {
    for (let changed = true; changed;) {
      changed = false
      for (const node of this.#rules.values()) {
        const before = this.#costs.get(node) ?? Infinity
        const now = this.#cost(node)
        if (now < before) {
          this.#costs.set(node, now)
          changed = true
        }
      }
    }
  }

  #cost(node: Node): number {
    switch (node.kind) {
      case "sequence":
        return node.items.reduce((sum, item) => sum + this.#cost(item), 0)
      case "choice":
        return Math.min(Infinity, ...node.items.map((item) => this.#cost(item)))
      case "repeat":
        return node.min === 0 ? 0 : node.min * this.#cost(node.item)
      case "rule":
        return 1 + (this.#costs.get(this.#rule(node.name)) ?? Infinity)
      case "permutation":
        return node.items.reduce((sum, item) => item.required === true ? sum + this.#cost(item.node) : sum, node.min ?? 0)
      case "class":
        return node.ranges.length === 0 && node.negated !== true ? Infinity : 1
      default:
        return 1
    }
  }

  #index(count: number): number {
    return Math.floor(this.#next() * count)
  }

  #isLong(): boolean {
    return this.#length > 400
  }

  #emit(text: string): string {
    this.#length += text.length
    return text
  }

  #walk(node: Node): string {
    switch (node.kind) {
      case "text":
        return this.#emit(node.value)
      case "class":
        return this.#emit(this.#character(pointsOf(node)))
      case "sequence":
        return node.items.map((item) => this.#walk(item)).join("")
      case "choice": {
        const open = node.items.filter((item) => this.#cost(item) < Infinity)
        const least = Math.min(...open.map((item) => this.#cost(item)))
        const among = this.#isLong() ? open.filter((item) => this.#cost(item) === least) : open
        const chosen = among[this.#index(among.length)]
        if (chosen === undefined) throw new Error("a choice of nothing")
        return this.#walk(chosen)
      }
      case "repeat": {
        const spread = this.#isLong() ? 0 : Math.min((node.max ?? Infinity) - node.min, 4)
        const count = node.min + this.#index(spread + 1)
        return Array.from({ length: count }, () => this.#walk(node.item)).join("")
      }
      case "rule":
        return this.#walk(this.#rule(node.name))
      case "and":
      case "not":
        return this.#regular(this.#language(node))
      case "lexeme":
      case "content":
        return this.#walk(node.item)
      case "free":
        return this.#emit(this.#free(node))
      case "permutation":
        return this.#permutation(node)
      default:
        throw new Error(`no walk through ${node.kind}`)
    }
  }

  /** Some text without a trigger or what is excepted, then a trigger where there are any. */
  #free(node: Free): string {
    const triggers = node.until.filter((trigger) => typeof trigger === "string")
    const banned = [...triggers, ...node.except ?? []]
    const words = Array.from({ length: this.#index(4) }, () => ["Hm.", " ", "\n", "<", "a{b", "é😀", "[", "\""][this.#index(8)] ?? "").join(
      ""
    )
    const text = banned.some((own) => words.includes(own)) ? "" : words
    const trigger = triggers[this.#index(triggers.length)] ?? ""
    // The trigger ends the text where it first occurs.
    return (text + trigger).indexOf(trigger) === text.length ? text + trigger : trigger
  }

  #character(points: CodePoints.CodePoints): string {
    const liked = favourites.filter((point) => CodePoints.has(points, point))
    if (liked.length > 0 && this.#next() < 0.4) return String.fromCodePoint(liked[this.#index(liked.length)] ?? 0)
    const [first, last] = points[this.#index(points.length)] ?? [0, 0]
    return String.fromCodePoint(first + this.#index(last - first + 1))
  }

  /** A text of a regular language with `and` and `not`, a character at a time, never into a dead end. */
  #regular(language: Regular.Regular): string {
    let state = language
    let text = ""
    for (;;) {
      const ends = Regular.isNullable(state)
      if (ends && (this.#isLong() || this.#next() < 0.3)) return text
      const step = this.#step(state)
      if (step === undefined) {
        if (ends) return text
        throw new Error("a dead end in a regular language")
      }
      text += this.#emit(String.fromCodePoint(step[0]))
      state = step[1]
      if (text.length > 5000) throw new Error("a regular language that does not end")
    }
  }

  /** A random character that leads on, with what may follow it. */
  #step(state: Regular.Regular): readonly [number, Regular.Regular] | undefined {
    let steps = this.#steps.get(state)
    if (steps === undefined) this.#steps.set(state, steps = { points: [...Derivatives.representatives(state)], after: new Map() })
    const points = [...steps.points]
    while (points.length > 0) {
      const [point = 0] = points.splice(this.#index(points.length), 1)
      if (!steps.after.has(point)) steps.after.set(point, this.#unique(Derivatives.derivative(state, point)))
      const next = steps.after.get(point)
      if (next !== undefined) return [point, next]
    }
    return undefined
  }

  #unique(language: Regular.Regular): Regular.Regular | undefined {
    if (Regular.isNever(language)) return undefined
    const key = Derivatives.keyOf(language)
    if (!this.#known.has(key)) this.#known.set(key, Derivatives.isNever(language) === true ? undefined : language)
    return this.#known.get(key)
  }

  #language(node: Node): Regular.Regular {
    let language = this.#languages.get(node)
    if (language === undefined) this.#languages.set(node, language = this.toRegular(node))
    return language
  }

  #permutation({ items, max, min, ordered, separator }: Permutation): string {
    const chosen: Array<Node> = []
    const open = items.filter((item) => this.#cost(item.node) < Infinity)
    const required = open.filter((item) => item.required === true).length
    const most = (max ?? Infinity) - required
    let optional = 0
    for (const item of open) {
      const times = item.required === true ? 1 : this.#isLong() || optional >= most ? 0 : this.#index(item.many === true ? 3 : 2)
      for (let time = 0; time < times && (item.required === true || optional < most); time++) {
        chosen.push(item.node)
        if (item.required !== true) optional++
      }
    }
    for (const item of open) {
      if (chosen.length >= (min ?? 0)) break
      if (!chosen.includes(item.node)) {
        chosen.splice(chosen.findIndex((node) => open.findIndex((own) => own.node === node) > open.indexOf(item)) >>> 0, 0, item.node)
      }
    }
    while (chosen.length < (min ?? 0)) {
      const many = open.find((item) => item.many === true)
      if (many === undefined) throw new Error("a permutation of too few items")
      chosen.push(many.node)
    }
    const order = ordered === true
      ? chosen
      : chosen.map((node) => [this.#next(), node] as const).toSorted(([a], [b]) => a - b).map(([, node]) => node)
    return order.map((node, index) => (index === 0 ? "" : this.#walk(separator)) + this.#walk(node)).join("")
  }

  /** A regular node as the language it stands for. */
  toRegular(node: Node): Regular.Regular {
    switch (node.kind) {
      case "text":
        return Regular.text(node.value)
      case "class":
        return Regular.characters(pointsOf(node))
      case "sequence":
        return Regular.sequence(node.items.map((item) => this.toRegular(item)))
      case "choice":
        return Regular.choice(node.items.map((item) => this.toRegular(item)))
      case "repeat":
        return Regular.repeat(this.toRegular(node.item), node.min, node.max ?? Infinity)
      case "rule":
        return this.toRegular(this.#rule(node.name))
      case "and":
        return Regular.and(node.items.map((item) => this.toRegular(item)))
      case "not":
        return Regular.not(this.toRegular(node.item))
      case "lexeme":
      case "content":
        return this.toRegular(node.item)
      default:
        throw new Error(`${node.kind} is not regular`)
    }
  }
}

/** What may follow a language's state: characters that stand for all, and the state after each that was tried. */
interface Steps {
  readonly points: ReadonlyArray<number>
  readonly after: Map<number, Regular.Regular | undefined>
}

const pointsOf = (node: Extract<Node, { readonly kind: "class" }>): CodePoints.CodePoints => {
  const points = CodePoints.of(...node.ranges)
  return node.negated === true ? CodePoints.complement(points) : points
}
