import type { Result } from "effect"
import { withoutCase } from "./CharacterSets.ts"
import * as CodePoints from "./CodePoints.ts"
import { GrammarBuilder } from "./GrammarBuilder.ts"
import { attempt, type GrammarError } from "./GrammarError.ts"
import * as Ir from "./Ir.ts"
import { larkLibrary } from "./LarkLibrary.ts"
import * as Pattern from "./Pattern.ts"
import * as Regular from "./Regular.ts"
import { toNode } from "./RegularNode.ts"
import { RuleSet } from "./RuleSet.ts"
import { repetition, TextCursor } from "./TextCursor.ts"

/** Characters of a grammar's text. */
const mostCharacters = 500_000

/**
 * A Lark grammar, from the rule `start`. Terminals match wherever their language does, as with Lark's `dynamic_complete` lexer: priorities and the order
 * of alternatives decide between readings of a text, and a grammar that only accepts needs no decision. Aliases and the marks `?`, `!` and `_`
 * shape a tree that nobody builds.
 */
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
export const compileInto = (builder: GrammarBuilder, text: string): Ir.Node => new LarkReader(text, builder).read()

const blank = /(?:[ \t\f]|\\\r?\n)+/y
const comment = /(?:\/\/|#)[^\n]*/y
const ruleStart = /[!?]{0,2}(_?[a-z][_a-z0-9]*)/y
const terminalStart = /_?[A-Z][_A-Z0-9]*/y
const anyName = /_?[A-Za-z][_A-Za-z0-9]*/y
const string = /"(?:[^"\\\n]|\\[^\n])*"(i?)/y
const regexp = /\/(?!\/)((?:\\\/|\\\\|[^/\n])+?)\/([imslux]*)/y
const counts = /~[ \t]*\d+(?:[ \t]*\.\.[ \t]*\d+)?/y

class LarkReader {
  readonly #cursor: TextCursor
  readonly #rules: RuleSet
  readonly #builder: GrammarBuilder
  readonly #ignored: Array<Ir.Node> = []
  #ignoredName: string | undefined
  /** Whether a terminal is being defined: nothing is ignored within. */
  #inTerminal = false
  /** The terminals that a terminal uses, and where it is defined. */
  readonly #terminals = new Map<string, { readonly offset: number; readonly uses: Set<string> }>()
  #uses = new Set<string>()

  constructor(text: string, builder: GrammarBuilder) {
    this.#cursor = new TextCursor(text)
    this.#builder = builder
    this.#rules = new RuleSet(this.#cursor, builder)
    if (/^[ \t]*%ignore\b/m.test(text)) this.#ignoredName = builder.fresh("ignored")
  }

  read(): Ir.Node {
    const cursor = this.#cursor
    if (cursor.text.length > mostCharacters) cursor.fail("TooLarge", `the grammar is longer than ${mostCharacters} characters`)
    for (this.#skipLines(); !cursor.isDone; this.#skipLines()) {
      if (cursor.next === "%") this.#directive()
      else this.#definition()
    }
    if (!this.#rules.has("start")) cursor.fail("Invalid", "there is no rule named start", 0)
    const start = this.#rules.reference("start", 0)
    this.#refuseRecursiveTerminals()
    this.#rules.finish()
    if (this.#ignoredName === undefined) return start
    this.#builder.define(this.#ignoredName, Ir.repeat(Ir.choice(...this.#ignored)))
    return Ir.sequence(Ir.rule(this.#ignoredName), start)
  }

  #refuseRecursiveTerminals(): void {
    for (const [name, { offset, uses }] of this.#terminals) {
      const reached = new Set(uses)
      for (const other of reached) {
        this.#builder.budget.step()
        for (const next of this.#terminals.get(other)?.uses ?? []) reached.add(next)
      }
      if (reached.has(name)) this.#cursor.fail("Invalid", `the terminal ${name} contains itself`, offset)
    }
  }

  #skip(): void {
    this.#cursor.match(blank)
  }

  /** Passes over line ends, blank lines and comments. */
  #skipLines(): void {
    const cursor = this.#cursor
    while (cursor.match(/\s+/y) !== undefined || cursor.match(comment) !== undefined) { /* on to the next */ }
  }

  #endLine(): void {
    this.#skip()
    this.#cursor.match(comment)
    if (!this.#cursor.isDone && this.#cursor.next !== "\n" && this.#cursor.next !== "\r") {
      this.#cursor.fail("Invalid", `${JSON.stringify(this.#cursor.next)} is out of place`)
    }
  }

  #directive(): void {
    const cursor = this.#cursor
    const start = cursor.at
    const directive = cursor.match(/%[a-z_]+/y) ?? "%"
    this.#skip()
    if (directive === "%ignore") {
      this.#inTerminal = true
      this.#ignored.push(this.#choice())
      this.#inTerminal = false
    } else if (directive === "%import") this.#import()
    else cursor.fail("Unsupported", `the directive ${directive} cannot be enforced`, start)
    this.#endLine()
  }

  #import(): void {
    const cursor = this.#cursor
    const start = cursor.at
    if (!cursor.take("common")) cursor.fail("Unsupported", "only the library common can be imported", start)
    this.#skip()
    if (cursor.take("(")) {
      do {
        this.#skip()
        const offset = cursor.at
        const name = cursor.match(anyName) ?? cursor.fail("Invalid", "a terminal's name is missing")
        this.#rules.define(name, this.#library(name, offset), offset)
        this.#skip()
      } while (cursor.take(","))
      if (!cursor.take(")")) cursor.fail("Invalid", "a parenthesis is not closed", start)
      return
    }
    if (!cursor.take(".")) cursor.fail("Invalid", "what to import is missing")
    const offset = cursor.at
    const name = cursor.match(anyName) ?? cursor.fail("Invalid", "a terminal's name is missing")
    this.#skip()
    const alias = cursor.take("->") ? (this.#skip(), cursor.match(anyName) ?? cursor.fail("Invalid", "an alias is missing")) : name
    this.#rules.define(alias, this.#library(name, offset), offset)
  }

  #library(name: string, offset: number): Ir.Node {
    const source = larkLibrary.get(name) ?? this.#cursor.fail("Invalid", `the library common has no ${name}`, offset)
    return { kind: "lexeme", item: this.#regular(source.slice(1, -1), "", offset) }
  }

  #definition(): void {
    const cursor = this.#cursor
    const start = cursor.at
    const terminal = cursor.match(terminalStart)
    const name = terminal ?? cursor.match(ruleStart)?.replace(/^[!?]+/, "")
    if (name === undefined) return cursor.fail("Invalid", "a rule, a terminal or a directive must begin here")
    if (cursor.next === "{") cursor.fail("Unsupported", "a template cannot be enforced")
    cursor.match(/\.-?\d+/y)
    this.#skip()
    if (!cursor.take(":")) cursor.fail("Invalid", "a colon must follow the name")
    this.#inTerminal = terminal !== undefined
    this.#uses = new Set()
    if (terminal !== undefined) this.#terminals.set(terminal, { offset: start, uses: this.#uses })
    const node = this.#choice()
    this.#inTerminal = false
    this.#rules.define(name, terminal === undefined || !isRegular(node) ? node : { kind: "lexeme", item: node }, start)
    this.#endLine()
  }

  #choice(nested = false): Ir.Node {
    const branches = [this.#alternative(nested)]
    while (this.#bar()) branches.push(this.#alternative(nested))
    return branches.length === 1 && branches[0] !== undefined ? branches[0] : Ir.choice(...branches)
  }

  /** A bar, which may stand at the beginning of a later line. */
  #bar(): boolean {
    const before = this.#cursor.at
    this.#skipLines()
    if (this.#cursor.take("|")) return true
    this.#cursor.at = before
    return false
  }

  #alternative(nested: boolean): Ir.Node {
    const cursor = this.#cursor
    const items: Array<Ir.Node> = []
    for (;;) {
      if (nested) this.#skipLines()
      else this.#skip()
      if (cursor.isDone || /[\n\r|)\]]/.test(cursor.next)) break
      if (cursor.take("->")) {
        this.#skip()
        if (cursor.match(anyName) === undefined) cursor.fail("Invalid", "an alias is missing")
        continue
      }
      if (cursor.sees(comment)) {
        cursor.match(comment)
        continue
      }
      items.push(this.#repeated(this.#atom()))
    }
    return items.length === 1 && items[0] !== undefined ? items[0] : Ir.sequence(...items)
  }

  #repeated(item: Ir.Node): Ir.Node {
    const cursor = this.#cursor
    this.#skip()
    if (cursor.take("*")) return Ir.repeat(item)
    if (cursor.take("+")) return Ir.repeat(item, 1)
    if (cursor.take("?")) return Ir.optional(item)
    if (cursor.next !== "~") return item
    const [min, max] = repetition(cursor, counts) ?? cursor.fail("Invalid", "a repetition is ~n or ~n..m")
    return Ir.repeat(item, min, max)
  }

  #atom(): Ir.Node {
    const cursor = this.#cursor
    const start = cursor.at
    const closing = cursor.next === "(" ? ")" : cursor.next === "[" ? "]" : undefined
    if (closing !== undefined) {
      cursor.at++
      const inner = cursor.nested(() => this.#choice(true))
      this.#skipLines()
      if (!cursor.take(closing)) cursor.fail("Invalid", "a parenthesis is not closed", start)
      return closing === "]" ? Ir.optional(inner) : inner
    }
    const literal = cursor.match(string)
    if (literal !== undefined) return this.#terminal(this.#literal(literal, start))
    const expression = cursor.match(regexp)
    if (expression !== undefined) {
      const end = expression.lastIndexOf("/")
      return this.#terminal(this.#regular(expression.slice(1, end), expression.slice(end + 1), start))
    }
    const name = cursor.match(anyName)
    if (name === undefined) return cursor.fail("Invalid", `${JSON.stringify(cursor.next)} is out of place`)
    if (cursor.next === "{") cursor.fail("Unsupported", "a template cannot be enforced", start)
    const isTerminal = name.toUpperCase() === name
    if (!isTerminal && this.#inTerminal) cursor.fail("Invalid", `the terminal uses the rule ${name}`, start)
    this.#uses.add(name)
    const reference = this.#rules.reference(name, start)
    return isTerminal ? this.#terminal(reference) : reference
  }

  /** A terminal in a rule, and after it what is ignored. */
  #terminal(node: Ir.Node): Ir.Node {
    return this.#ignoredName === undefined || this.#inTerminal ? node : Ir.sequence(node, Ir.rule(this.#ignoredName))
  }

  #literal(written: string, start: number): Ir.Node {
    const text = this.#unquoted(written, start)
    const after = this.#cursor.at
    if (this.#cursor.take("..")) {
      const upper = this.#cursor.match(string) ?? this.#cursor.fail("Invalid", "the end of a range is missing")
      return toNode(Regular.characters(this.#range(text, this.#unquoted(upper, after + 2), start)))
    }
    if (!written.endsWith("i")) return Ir.text(text)
    return toNode(Regular.sequence(Array.from(text, (character) => Regular.characters(withoutCase(CodePoints.among(character))))))
  }

  #range(from: string, to: string, start: number): CodePoints.CodePoints {
    const [first, last] = [from.codePointAt(0) ?? 0, to.codePointAt(0) ?? 0]
    if ([...from].length !== 1 || [...to].length !== 1 || first > last) {
      this.#cursor.fail("Invalid", "a range has a first and a last character", start)
    }
    return CodePoints.of([first, last])
  }

  #unquoted(written: string, start: number): string {
    const body = written.slice(1, written.lastIndexOf("\""))
    return body.replace(
      /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gs,
      (_whole, ...groups: ReadonlyArray<string | undefined>) => {
        const [short, long, longest, kind = ""] = groups
        const code = short ?? long ?? longest
        if (code !== undefined) {
          const point = Number.parseInt(code, 16)
          return point > 0x10ffff ? this.#cursor.fail("Invalid", "an escape is no character", start) : String.fromCodePoint(point)
        }
        return { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", "0": "\0" }[kind] ??
          (/[A-Za-z0-9]/.test(kind) ? this.#cursor.fail("Invalid", `the escape \\${kind} is unknown`, start) : kind)
      }
    )
  }

  #regular(source: string, flags: string, start: number): Ir.Node {
    if (flags.includes("x")) this.#cursor.fail("Unsupported", "the flag x of an expression cannot be enforced", start)
    this.#builder.budget.check()
    return toNode(Pattern.whole(
      source,
      { dialect: "python", embedded: true, ignoreCase: flags.includes("i"), dotAll: flags.includes("s") },
      (reason, message, offset) => this.#cursor.fail(reason, message, start + 1 + offset)
    ))
  }
}

/** A lone text gains nothing from an automaton of its own. */
const isRegular = (node: Ir.Node): boolean => node.kind !== "text" && node.kind !== "rule"
