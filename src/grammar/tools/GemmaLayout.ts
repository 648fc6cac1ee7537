import * as Ir from "../Ir.ts"
import * as Regular from "../Regular.ts"
import type { ValueLayout } from "../ValueLayout.ts"
import { plainText } from "./TextValues.ts"

const quote = "<|\"|>"
const bareKey = /^[\w$.-]+$/

/** Values as Gemma 4 writes them: bare keys, strings between marks and without escapes. */
export class GemmaLayout implements ValueLayout {
  readonly comma = Ir.text(",")
  readonly #quote: Ir.Node

  /** `quote`: the mark on both sides of a string. */
  constructor(quote: Ir.Node) {
    this.#quote = quote
  }

  key(names: Regular.Regular): Ir.Node {
    return names._tag === "Text" && bareKey.test(names.text) ? Ir.text(names.text) : this.string(names)
  }

  property(key: Ir.Node, value: Ir.Node): Ir.Node {
    return Ir.sequence(key, Ir.text(":"), value)
  }

  enclosed(open: string, content: Ir.Node, close: string): Ir.Node {
    return Ir.sequence(Ir.text(open), content, Ir.text(close))
  }

  literal(value: unknown): Ir.Node {
    if (typeof value === "string") return this.string(Regular.text(value))
    if (typeof value !== "object" || value === null) return Ir.text(JSON.stringify(value))
    const isArray = Array.isArray(value)
    const items = isArray
      ? value.map((item) => this.literal(item))
      : Object.entries(value).map(([name, item]) => this.property(this.key(Regular.text(name)), this.literal(item)))
    const content = Ir.sequence(...items.flatMap((item, index) => index === 0 ? [item] : [this.comma, item]))
    return isArray ? this.enclosed("[", content, "]") : this.enclosed("{", content, "}")
  }

  string(language: Regular.Regular): Ir.Node {
    return Ir.sequence(this.#quote, plainText(language, quote), this.#quote)
  }
}
