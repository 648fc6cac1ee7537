import { childrenOf, type Grammar, type Node } from "./Ir.ts"

/** The IR as the bytes that the native engine compiles (layout: native/GRAMMAR.md). They are a function of the grammar alone. */
export const encodeGrammar = (grammar: Grammar): Uint8Array => new GrammarEncoder().encode(grammar)

const Kind = {
  text: 1,
  class: 2,
  sequence: 3,
  choice: 4,
  repeat: 5,
  rule: 6,
  and: 7,
  not: 8,
  lexeme: 9,
  permutation: 10,
  free: 11,
  token: 12,
  content: 13
} as const

class GrammarEncoder {
  private readonly names = new Map<string, number>()
  private readonly nodes = new Map<Node, number>()
  private readonly table = new Bytes()

  encode(grammar: Grammar): Uint8Array {
    const rules = grammar.rules.map(({ name, node }) => [this.name(name), this.place(node)] as const)
    const root = this.name(grammar.root)
    const head = new Bytes()
    head.raw(magic)
    head.count(this.names.size)
    for (const name of this.names.keys()) head.text(name)
    head.count(this.nodes.size)
    const tail = new Bytes()
    tail.count(rules.length)
    for (const [name, node] of rules) {
      tail.count(name)
      tail.count(node)
    }
    tail.count(root)
    return Buffer.concat([head.take(), this.table.take(), tail.take()])
  }

  private name(name: string): number {
    const known = this.names.get(name)
    if (known !== undefined) return known
    this.names.set(name, this.names.size)
    return this.names.size - 1
  }

  /** The index of a node, which is written after its children; without recursion, as grammars may be deep. */
  private place(root: Node): number {
    const pending = [root]
    for (let node = pending.at(-1); node !== undefined; node = pending.at(-1)) {
      const missing = this.nodes.has(node) ? [] : childrenOf(node).filter((child) => !this.nodes.has(child))
      if (missing.length > 0) {
        for (const child of missing) pending.push(child)
        continue
      }
      pending.pop()
      if (this.nodes.has(node)) continue
      this.write(node)
      this.nodes.set(node, this.nodes.size)
    }
    return this.index(root)
  }

  private index(node: Node): number {
    const index = this.nodes.get(node)
    if (index === undefined) throw new Error("a node of the grammar contains itself")
    return index
  }

  private write(node: Node): void {
    const out = this.table
    out.byte(Kind[node.kind])
    switch (node.kind) {
      case "text":
        return out.text(node.value)
      case "class": {
        out.byte(node.negated === true ? 1 : 0)
        out.count(node.ranges.length)
        for (const [low, high] of node.ranges) {
          out.count(low)
          out.count(high)
        }
        return
      }
      case "sequence":
      case "choice":
      case "and":
        return out.counts(node.items.map((item) => this.index(item)))
      case "repeat": {
        out.count(this.index(node.item))
        out.count(node.min)
        return out.limit(node.max)
      }
      case "rule":
        return out.count(this.name(node.name))
      case "not":
      case "lexeme":
      case "content":
        return out.count(this.index(node.item))
      case "permutation": {
        out.byte(node.ordered === true ? 1 : 0)
        out.count(node.min ?? 0)
        out.limit(node.max ?? null)
        out.count(this.index(node.separator))
        out.count(node.items.length)
        for (const item of node.items) {
          out.byte((item.required === true ? 1 : 0) | (item.many === true ? 2 : 0))
          out.count(this.index(item.node))
        }
        return
      }
      case "free": {
        out.count(node.until.length)
        for (const trigger of node.until) {
          out.byte(typeof trigger === "string" ? 0 : 1)
          if (typeof trigger === "string") out.text(trigger)
          else out.counts(trigger.tokens)
        }
        out.count(node.except?.length ?? 0)
        for (const text of node.except ?? []) out.text(text)
        return
      }
      case "token":
        return out.counts(node.ids)
    }
  }
}

const encoder = new TextEncoder()
const magic = encoder.encode("MBG1")

/** Bytes and LEB128 numbers, one after another. */
class Bytes {
  private buffer = new Uint8Array(1024)
  private length = 0

  byte(value: number): void {
    this.reserve(1)
    this.buffer[this.length++] = value
  }

  /** @throws RangeError unless it is an integer from 0 to 2^32 − 1. */
  count(value: number): void {
    if (!Number.isInteger(value) || value < 0 || value > 0xffffffff) throw new RangeError(`a grammar cannot hold the number ${value}`)
    this.reserve(5)
    let rest = value
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) this.buffer[this.length++] = rest % 128 + 128
    this.buffer[this.length++] = rest
  }

  /** A limit is written as itself plus one, and none as 0. */
  limit(value: number | null): void {
    this.count(value === null ? 0 : value + 1)
  }

  counts(values: ReadonlyArray<number>): void {
    this.count(values.length)
    for (const value of values) this.count(value)
  }

  text(value: string): void {
    const bytes = encoder.encode(value)
    this.count(bytes.length)
    this.raw(bytes)
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length)
    this.buffer.set(bytes, this.length)
    this.length += bytes.length
  }

  take(): Uint8Array {
    return this.buffer.subarray(0, this.length)
  }

  private reserve(more: number): void {
    if (this.length + more <= this.buffer.length) return
    const grown = new Uint8Array(Math.max(2 * this.buffer.length, this.length + more))
    grown.set(this.take())
    this.buffer = grown
  }
}
