import type { Types } from "../../domain/ToolParameters.ts"
import { wordCharacters as wordSet } from "../CharacterSets.ts"
import * as CodePoints from "../CodePoints.ts"
import { GrammarError } from "../GrammarError.ts"
import * as Ir from "../Ir.ts"
import { JsonLayout } from "../JsonText.ts"
import * as Regular from "../Regular.ts"
import { toNode } from "../RegularNode.ts"

const unsupported = (message: string): never => {
  throw new GrammarError({ reason: "Unsupported", message, path: "" })
}

const found = new Map<string, Regular.Regular>()

/** Every text in which this one does not occur. */
export const without = (text: string): Regular.Regular => {
  const known = found.get(text)
  if (known !== undefined) return known
  const made = Regular.not(Regular.sequence([Regular.everything, Regular.text(text), Regular.everything]))
  found.set(text, made)
  return made
}

/** White space as `String.prototype.trim` takes it. */
const space = Regular.star(
  Regular.characters(
    CodePoints.among(
      "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    )
  )
)
const digit = Regular.characters(CodePoints.of([0x30, 0x39]))
const digits = Regular.repeat(digit, 1, Infinity)
const sign = (signs: string) => Regular.optional(Regular.characters(CodePoints.among(signs)))
const number = Regular.sequence([
  sign("-"),
  digits,
  Regular.optional(Regular.sequence([Regular.text("."), digits])),
  Regular.optional(Regular.sequence([Regular.characters(CodePoints.among("eE")), sign("+-"), digits]))
])
const anyOf = (...texts: ReadonlyArray<string>) => Regular.choice(texts.map(Regular.text))
const beginning = (text: string) => Regular.sequence([Regular.text(text), Regular.everything])

/** Texts that are read as values of another type than string, where that type is allowed. */
const others: ReadonlyArray<readonly [types: ReadonlyArray<string>, language: Regular.Regular]> = [
  [["null"], anyOf("null", "None")],
  [["boolean"], anyOf("true", "false", "True", "False")],
  [["number", "integer"], number],
  [["object"], beginning("{")],
  [["array"], beginning("[")]
]

/** Strings that are written as they are and read back as strings, although values of other types may stand in their place. */
export const unmistakable = (language: Regular.Regular, types: Types): Regular.Regular =>
  Regular.and([
    language,
    ...others.flatMap(([names, own]) => names.some((name) => types.has(name)) ? [Regular.not(Regular.sequence([space, own, space]))] : [])
  ])

/** A text of the language as it is, in which the closer does not occur. */
export const plainText = (language: Regular.Regular, closer: string): Ir.Node => {
  if (language._tag === "Text") return language.text.includes(closer) ? Ir.choice() : toNode(language)
  const own = language === Regular.everything ? without(closer) : Regular.and([language, without(closer)])
  return { kind: "lexeme", item: toNode(own) }
}

/** JSON between tags: nothing in it looks like the closing tag, which single texts write with an escape. */
export class TaggedJsonLayout extends JsonLayout {
  readonly #closer: string

  constructor(closer: string) {
    super("spaced")
    this.#closer = closer
  }

  override key(names: Regular.Regular): Ir.Node {
    return this.string(names)
  }

  override string(language: Regular.Regular): Ir.Node {
    return language._tag === "Text" ? this.literal(language.text) : super.string(Regular.and([language, without(this.#closer)]))
  }

  override literal(value: unknown): Ir.Node {
    const node = super.literal(value)
    if (node.kind !== "text") return node
    const first = `\\u${this.#closer.charCodeAt(0).toString(16).padStart(4, "0")}`
    return Ir.text(node.value.replaceAll(this.#closer, first + this.#closer.slice(1)))
  }
}

const wordCharacters = Regular.repeat(Regular.characters(CodePoints.union(wordSet, CodePoints.among("$.-"))), 1, 64)
const identifier = Regular.sequence([
  Regular.characters(CodePoints.difference(wordSet, CodePoints.of([0x30, 0x39]))),
  Regular.repeat(Regular.characters(wordSet), 0, 63)
])

/** Names of a language as they stand, without quotes; only plain ones where it holds several. */
export const bareNames = (names: Regular.Regular, kind: "word" | "identifier", allowed: RegExp): Ir.Node => {
  if (names._tag !== "Text") return { kind: "lexeme", item: toNode(Regular.and([names, kind === "word" ? wordCharacters : identifier])) }
  return allowed.test(names.text)
    ? toNode(names)
    : unsupported(`a parameter named ${JSON.stringify(names.text)} cannot be written in this model's calls`)
}
