import type { Result } from "effect"
import * as CodePoints from "./CodePoints.ts"
import { GrammarBuilder } from "./GrammarBuilder.ts"
import { attempt, type GrammarError } from "./GrammarError.ts"
import * as Ir from "./Ir.ts"
import { classNode } from "./RegularNode.ts"
import { RuleSet } from "./RuleSet.ts"
import { repetition, TextCursor } from "./TextCursor.ts"

/** Characters of a grammar's text. */
const mostCharacters = 500_000

/** A grammar in llama.cpp's GBNF, the EBNF of vLLM's `guided_grammar`; its root is the rule `root`. */
export const compile = (text: string): Result.Result<Ir.Grammar, GrammarError> =>
  attempt(() => {
    const builder = new GrammarBuilder()
    return builder.finish(compileInto(builder, text), "grammar")
  })

/**
 * The same as a node of a larger grammar.
 *
 * @throws GrammarError
 */
export const compileInto = (builder: GrammarBuilder, text: string): Ir.Node => new GbnfReader(text, builder).read()

const space = /(?:[ \t\r\n]|#[^\n]*)+/y
const ruleName = /[A-Za-z_][A-Za-z0-9_-]*/y
const ruleStart = /[A-Za-z_][A-Za-z0-9_-]*[ \t]*::=/y
const counts = /\{[ \t]*\d+[ \t]*(?:,[ \t]*\d*)?[ \t]*\}/y

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  "\\": "\\",
  "\"": "\"",
  "'": "'",
  "[": "[",
  "]": "]",
  "-": "-",
  "^": "^",
  "/": "/"
}

class GbnfReader {
  readonly #cursor: TextCursor
  readonly #rules: RuleSet

  constructor(text: string, builder: GrammarBuilder) {
    this.#cursor = new TextCursor(text)
    this.#rules = new RuleSet(this.#cursor, builder)
  }

  read(): Ir.Node {
    const cursor = this.#cursor
    if (cursor.text.length > mostCharacters) cursor.fail("TooLarge", `the grammar is longer than ${mostCharacters} characters`)
    cursor.match(space)
    while (!cursor.isDone) {
      const start = cursor.at
      const name = cursor.match(ruleName) ?? cursor.fail("Invalid", "a rule begins with its name")
      cursor.match(/[ \t]+/y)
      if (!cursor.take("::=")) cursor.fail("Invalid", "::= must follow a rule's name")
      cursor.match(space)
      this.#rules.define(name, this.#choice(), start)
      if (!cursor.isDone && !cursor.sees(ruleStart)) cursor.fail("Invalid", `${JSON.stringify(cursor.next)} is out of place`)
    }
    const root = this.#rules.reference("root", 0)
    if (!this.#rules.has("root")) cursor.fail("Invalid", "there is no rule named root", 0)
    this.#rules.finish()
    return root
  }

  #choice(): Ir.Node {
    const branches = [this.#sequence()]
    while (this.#cursor.take("|")) {
      this.#cursor.match(space)
      branches.push(this.#sequence())
    }
    return branches.length === 1 && branches[0] !== undefined ? branches[0] : Ir.choice(...branches)
  }

  #sequence(): Ir.Node {
    const items: Array<Ir.Node> = []
    for (;;) {
      const { next } = this.#cursor
      if (this.#cursor.isDone || next === "|" || next === ")" || this.#cursor.sees(ruleStart)) break
      items.push(this.#repeated(this.#item()))
      this.#cursor.match(space)
    }
    return items.length === 1 && items[0] !== undefined ? items[0] : Ir.sequence(...items)
  }

  #repeated(item: Ir.Node): Ir.Node {
    const cursor = this.#cursor
    let node = item
    for (;;) {
      cursor.match(/[ \t]+/y)
      if (cursor.take("*")) node = Ir.repeat(node)
      else if (cursor.take("+")) node = Ir.repeat(node, 1)
      else if (cursor.take("?")) node = Ir.optional(node)
      else if (cursor.next === "{") {
        const [min, max] = repetition(cursor, counts) ?? cursor.fail("Invalid", "a repetition is {m}, {m,} or {m,n}")
        node = Ir.repeat(node, min, max)
      } else return node
    }
  }

  #item(): Ir.Node {
    const cursor = this.#cursor
    const start = cursor.at
    const name = cursor.match(ruleName)
    if (name !== undefined) return this.#rules.reference(name, start)
    switch (cursor.next) {
      case "\"":
        return this.#literal(start)
      case "[":
        return this.#class(start)
      case ".":
        cursor.at++
        return classNode(CodePoints.all)
      case "(": {
        if (cursor.match(/\([=!]/y) !== undefined) cursor.fail("Unsupported", "a lookahead cannot be enforced", start)
        cursor.at++
        cursor.match(space)
        const inner = cursor.nested(() => this.#choice())
        if (!cursor.take(")")) cursor.fail("Invalid", "a parenthesis is not closed", start)
        return inner
      }
      case "<":
      case "!":
        return this.#token(start)
      default:
        return cursor.fail("Invalid", `${JSON.stringify(cursor.next)} is out of place`)
    }
  }

  #token(start: number): Ir.Node {
    const written = this.#cursor.match(/<\[\d{1,9}\]>/y)
    if (written !== undefined) return { kind: "token", ids: [Number(written.slice(2, -2))] }
    return this.#cursor.fail("Unsupported", "a token is enforced only by its id, <[123]>", start)
  }

  #literal(start: number): Ir.Node {
    const cursor = this.#cursor
    cursor.at++
    let text = ""
    for (;;) {
      if (cursor.isDone) cursor.fail("Invalid", "a literal is not closed", start)
      if (cursor.take("\"")) return Ir.text(text)
      text += this.#character()
    }
  }

  #class(start: number): Ir.Node {
    const cursor = this.#cursor
    cursor.at++
    const negated = cursor.take("^")
    const ranges: Array<readonly [number, number]> = []
    for (;;) {
      if (cursor.isDone) cursor.fail("Invalid", "a character class is not closed", start)
      if (cursor.take("]")) break
      const from = this.#character().codePointAt(0) ?? 0
      const dash = cursor.at
      if (cursor.next === "-" && cursor.text[cursor.at + 1] !== "]") {
        cursor.at++
        const to = this.#character().codePointAt(0) ?? 0
        if (from > to) cursor.fail("Invalid", "a range of characters is out of order", dash)
        ranges.push([from, to])
      } else ranges.push([from, from])
    }
    const points = CodePoints.of(...ranges)
    return classNode(negated ? CodePoints.complement(points) : points)
  }

  #character(): string {
    const cursor = this.#cursor
    const start = cursor.at
    if (!cursor.take("\\")) return cursor.character()
    const code = cursor.match(/x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}/y)
    if (code !== undefined) {
      const point = Number.parseInt(code.slice(1), 16)
      if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) cursor.fail("Invalid", "an escape is no character", start)
      return String.fromCodePoint(point)
    }
    const kind = cursor.isDone ? "" : cursor.character()
    return escapes[kind] ?? cursor.fail("Invalid", `the escape \\${kind} is unknown`, start)
  }
}
