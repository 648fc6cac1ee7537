import type { Grammar, Node, Permutation } from "../../src/grammar/Ir.ts"

/**
 * Whether a text is in a grammar's language, by the definitions of the nodes alone: the set of places where a node may end, from each place
 * where it may begin. Slow, and for grammars without left recursion.
 */
export class GrammarMatcher {
  readonly #rules: ReadonlyMap<string, Node>
  readonly #root: string
  #points: ReadonlyArray<number> = []
  #text = ""
  #known = new Map<Node, Map<number, ReadonlySet<number>>>()

  constructor(grammar: Grammar) {
    this.#rules = new Map(grammar.rules.map(({ name, node }) => [name, node]))
    this.#root = grammar.root
  }

  matches(text: string): boolean {
    this.#points = Array.from(text, (character) => character.codePointAt(0) ?? 0)
    this.#text = text
    this.#known = new Map()
    return this.#ends(this.#rule(this.#root), 0).has(this.#points.length)
  }

  #rule(name: string): Node {
    const node = this.#rules.get(name)
    if (node === undefined) throw new Error(`no rule ${name} in the grammar`)
    return node
  }

  #ends(node: Node, start: number): ReadonlySet<number> {
    let own = this.#known.get(node)
    if (own === undefined) this.#known.set(node, own = new Map())
    let ends = own.get(start)
    if (ends === undefined) own.set(start, ends = this.#find(node, start))
    return ends
  }

  #find(node: Node, start: number): ReadonlySet<number> {
    switch (node.kind) {
      case "text": {
        const points = Array.from(node.value, (character) => character.codePointAt(0) ?? 0)
        return new Set(points.every((point, index) => this.#points[start + index] === point) ? [start + points.length] : [])
      }
      case "class": {
        const point = this.#points[start]
        if (point === undefined || (point >= 0xd800 && point <= 0xdfff)) return new Set()
        const inside = node.ranges.some(([low, high]) => point >= low && point <= high)
        return new Set(inside === (node.negated !== true) ? [start + 1] : [])
      }
      case "sequence":
        return node.items.reduce<ReadonlySet<number>>((places, item) => this.#each(places, item), new Set([start]))
      case "choice":
        return new Set(node.items.flatMap((item) => [...this.#ends(item, start)]))
      case "repeat": {
        let places: ReadonlySet<number> = new Set([start])
        const ends = new Set<number>(node.min === 0 ? [start] : [])
        for (let count = 1; count <= (node.max ?? Infinity) && places.size > 0 && count <= this.#points.length + node.min + 1; count++) {
          places = this.#each(places, node.item)
          if (count >= node.min) { for (const place of places) ends.add(place) }
        }
        return ends
      }
      case "rule":
        return this.#ends(this.#rule(node.name), start)
      case "and": {
        const [first, ...others] = node.items.map((item) => this.#ends(item, start))
        return new Set([...first ?? []].filter((place) => others.every((other) => other.has(place))))
      }
      case "not": {
        const inside = this.#ends(node.item, start)
        return new Set(this.#from(start).filter((place) => !inside.has(place)))
      }
      case "lexeme":
      case "content":
        return this.#ends(node.item, start)
      case "permutation":
        return this.#permutation(node, start)
      case "free": {
        const rest = (place: number) => this.#points.slice(start, place).map((point) => String.fromCodePoint(point)).join("")
        const triggers = node.until.map((trigger) => {
          if (typeof trigger !== "string") throw new Error("a text has no tokens")
          return trigger
        })
        return new Set(
          this.#from(start).filter((place) => {
            const text = rest(place)
            if (node.except?.some((bad) => text.includes(bad)) === true) return false
            if (triggers.length === 0) return true
            const first = Math.min(...triggers.flatMap((trigger) => text.includes(trigger) ? [text.indexOf(trigger) + trigger.length] : []))
            return first === text.length
          })
        )
      }
      case "token":
        throw new Error("a text has no tokens")
    }
  }

  #from(start: number): ReadonlyArray<number> {
    return Array.from({ length: this.#points.length - start + 1 }, (_, index) => start + index)
  }

  #each(places: ReadonlySet<number>, node: Node): ReadonlySet<number> {
    return new Set([...places].flatMap((place) => [...this.#ends(node, place)]))
  }

  #permutation({ items, max, min, ordered, separator }: Permutation, start: number): ReadonlySet<number> {
    const ends = new Set<number>()
    const seen = new Set<string>()
    const walk = (place: number, used: ReadonlySet<number>, last: number, count: number): void => {
      const key = `${place} ${last} ${count} ${[...used].toSorted((a, b) => a - b).join()}`
      if (seen.has(key)) return
      seen.add(key)
      if (count >= (min ?? 0) && items.every((item, index) => item.required !== true || used.has(index))) ends.add(place)
      if (count >= (max ?? Infinity)) return
      for (const [index, item] of items.entries()) {
        if (used.has(index) && item.many !== true) continue
        if (ordered === true && index < last) continue
        for (const begin of count === 0 ? [place] : this.#ends(separator, place)) {
          for (const end of this.#ends(item.node, begin)) walk(end, new Set([...used, index]), index, count + 1)
        }
      }
    }
    walk(start, new Set(), -1, 0)
    return ends
  }

  /** What was last matched, for messages. */
  get text(): string {
    return this.#text
  }
}
