import * as CodePoints from "./CodePoints.ts"
import * as Ir from "./Ir.ts"
import * as Regular from "./Regular.ts"
import { toNode } from "./RegularNode.ts"
import type { ValueLayout } from "./ValueLayout.ts"

/**
 * Where white space stands in JSON text. `compact`: nowhere. `spaced`: one space after each comma and colon. `free`: at each place nothing, one
 * space, or a line break with up to 64 spaces or tabs; never an unbounded run.
 */
export type Whitespace = "compact" | "spaced" | "free"

/** Characters of a JSON string that are written as themselves. */
const plainCharacters = CodePoints.complement(CodePoints.of([0, 0x1f], [0x22, 0x22], [0x5c, 0x5c]))

const inner = (text: string): string => JSON.stringify(text.toWellFormed()).slice(1, -1)

const escapedCharacters: ReadonlyArray<readonly [number, string]> = [...Array(0x20).keys(), 0x22, 0x5c].map((point) =>
  [point, inner(String.fromCharCode(point))] as const
)

const encoded = new WeakMap<Regular.Regular, Regular.Regular>()

/**
 * The texts of a language as JSON strings hold them, without the quotes. Each has one spelling only, that of `JSON.stringify`, so the
 * encoding is one to one and agrees with `And` and `Not`.
 */
export const encode = (language: Regular.Regular): Regular.Regular => {
  const known = encoded.get(language)
  if (known !== undefined) return known
  const made = encodeAnew(language)
  encoded.set(language, made)
  return made
}

const encodeAnew = (language: Regular.Regular): Regular.Regular => {
  switch (language._tag) {
    case "Text":
      return Regular.text(inner(language.text))
    case "Class":
      return Regular.choice([
        Regular.characters(CodePoints.intersection(language.points, plainCharacters)),
        ...escapedCharacters.flatMap(([point, text]) => CodePoints.has(language.points, point) ? [Regular.text(text)] : [])
      ])
    case "Sequence":
      return Regular.sequence(language.items.map(encode))
    case "Choice":
      return Regular.choice(language.items.map(encode))
    case "And": {
      const items = language.items.map((item) => item === Regular.everything ? encodedCharacters : encode(item))
      return { _tag: "And", items }
    }
    case "Not":
      return { _tag: "Not", item: encode(language.item) }
    case "Repeat":
      return Regular.repeat(encode(language.item), language.min, language.max)
  }
}

const encodedCharacters = Regular.star(encode(Regular.anyCharacter))

const stringNodes = new WeakMap<Regular.Regular, Ir.Node>()

/** A JSON string, quotes included, whose text is in the language. */
export const stringNode = (language: Regular.Regular): Ir.Node => {
  const known = stringNodes.get(language)
  if (known !== undefined) return known
  const quote = Ir.text("\"")
  const node: Ir.Node = language._tag === "Text"
    ? Ir.text(JSON.stringify(language.text.toWellFormed()))
    : { kind: "lexeme", item: Ir.sequence(quote, toNode(encode(language)), quote) }
  stringNodes.set(language, node)
  return node
}

const gap: Ir.Node = Ir.optional(
  Ir.choice(Ir.text(" "), Ir.sequence(Ir.text("\n"), Ir.repeat({ kind: "class", ranges: [[0x09, 0x09], [0x20, 0x20]] }, 0, 64)))
)

/** The places between the parts of a JSON text, in one white space policy. */
export class JsonLayout implements ValueLayout {
  readonly #whitespace: Whitespace
  readonly comma: Ir.Node

  constructor(whitespace: Whitespace) {
    this.#whitespace = whitespace
    this.comma = whitespace === "free" ? Ir.sequence(gap, Ir.text(","), gap) : Ir.text(whitespace === "spaced" ? ", " : ",")
  }

  key(names: Regular.Regular): Ir.Node {
    return stringNode(names)
  }

  string(language: Regular.Regular): Ir.Node {
    return stringNode(language)
  }

  /** A property, whose key is a node of a JSON string. */
  property(key: Ir.Node, value: Ir.Node): Ir.Node {
    if (this.#whitespace === "free") return Ir.sequence(key, gap, Ir.text(":"), gap, value)
    const colon = this.#whitespace === "spaced" ? ": " : ":"
    return key.kind === "text" ? Ir.sequence(Ir.text(key.value + colon), value) : Ir.sequence(key, Ir.text(colon), value)
  }

  /** `content` between brackets. */
  enclosed(open: string, content: Ir.Node, close: string): Ir.Node {
    return this.#whitespace === "free"
      ? Ir.sequence(Ir.text(open), gap, content, gap, Ir.text(close))
      : Ir.sequence(Ir.text(open), content, Ir.text(close))
  }

  /** One JSON value, its keys in the order that they have. */
  literal(value: unknown): Ir.Node {
    if (this.#whitespace !== "free") return Ir.text(this.#write(value))
    if (typeof value !== "object" || value === null) return Ir.text(JSON.stringify(value))
    const parts: ReadonlyArray<Ir.Node> = Array.isArray(value)
      ? value.map((item) => this.literal(item))
      : Object.entries(value).map(([name, item]) => this.property(Ir.text(JSON.stringify(name)), this.literal(item)))
    const items = parts.flatMap((part, index) => index === 0 ? [part] : [this.comma, part])
    return Array.isArray(value) ? this.enclosed("[", Ir.sequence(...items), "]") : this.enclosed("{", Ir.sequence(...items), "}")
  }

  #write(value: unknown): string {
    if (typeof value === "string") return JSON.stringify(value.toWellFormed())
    if (typeof value !== "object" || value === null || this.#whitespace === "compact") return JSON.stringify(value)
    return Array.isArray(value)
      ? `[${value.map((item) => this.#write(item)).join(", ")}]`
      : `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${this.#write(item)}`).join(", ")}}`
  }
}
