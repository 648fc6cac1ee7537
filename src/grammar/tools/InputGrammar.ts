import type { Budget } from "../Budget.ts"
import * as CodePoints from "../CodePoints.ts"
import { GrammarBuilder } from "../GrammarBuilder.ts"
import { GrammarError } from "../GrammarError.ts"
import * as Ir from "../Ir.ts"
import { encode } from "../JsonText.ts"
import * as Lark from "../Lark.ts"
import * as Pattern from "../Pattern.ts"
import * as Regular from "../Regular.ts"
import { toNode } from "../RegularNode.ts"
import { CloserFree, closerFree } from "./CloserFree.ts"

/** The input of a tool, as it is and as it stands inside a JSON string, without the quotes. */
export interface InputNodes {
  /** Texts in which the closer does not occur. */
  readonly raw: (closer: string) => Ir.Node
  readonly escaped: () => Ir.Node
}

interface TransplantOptions {
  /** As inside a JSON string. */
  readonly escape?: boolean
  /** What becomes of a node; undefined: what becomes of its parts. */
  readonly instead?: (node: Ir.Node) => Ir.Node | undefined
  readonly marksContent: boolean
}

/** Rules of one grammar in another one, under new names. */
class Transplant {
  readonly #builder: GrammarBuilder
  readonly #escape: boolean
  readonly #instead: (node: Ir.Node) => Ir.Node | undefined
  readonly #marksContent: boolean
  readonly #names: ReadonlyMap<string, string>
  readonly #made = new Map<Ir.Node, Ir.Node>()

  constructor(
    builder: GrammarBuilder,
    grammar: Ir.Grammar,
    { escape = false, instead = () => undefined, marksContent }: TransplantOptions
  ) {
    this.#builder = builder
    this.#marksContent = marksContent
    this.#escape = escape
    this.#instead = instead
    this.#names = new Map(grammar.rules.map(({ name }) => [name, builder.fresh(`input-${name}`)]))
    for (const { name, node } of grammar.rules) this.#builder.define(this.#names.get(name) ?? name, this.node(node))
  }

  root(grammar: Ir.Grammar): Ir.Node {
    return Ir.rule(this.#names.get(grammar.root) ?? grammar.root)
  }

  node(node: Ir.Node): Ir.Node {
    const known = this.#made.get(node)
    if (known !== undefined) return known
    this.#builder.budget.step()
    const instead = this.#instead(node)
    const changed = instead ?? this.#changed(node)
    const made = this.#marksContent && (instead !== undefined || leaves.has(node.kind)) ? Ir.content(changed) : changed
    this.#made.set(node, made)
    return made
  }

  #changed(node: Ir.Node): Ir.Node {
    switch (node.kind) {
      case "text":
        return this.#escape ? Ir.text(JSON.stringify(node.value.toWellFormed()).slice(1, -1)) : node
      case "class":
        return this.#escape ? toNode(encode(Regular.characters(pointsOf(node)))) : node
      case "sequence":
      case "choice":
      case "and":
        return { ...node, items: node.items.map((item) => this.node(item)) }
      case "repeat":
      case "lexeme":
      case "content":
        return { ...node, item: this.node(node.item) }
      case "not": {
        const item = this.node(node.item)
        return this.#escape ? { kind: "and", items: [anyEscaped, { kind: "not", item }] } : { kind: "not", item }
      }
      case "rule":
        return Ir.rule(this.#names.get(node.name) ?? node.name)
      case "permutation":
        return {
          ...node,
          separator: this.node(node.separator),
          items: node.items.map((item) => ({ ...item, node: this.node(item.node) }))
        }
      case "free":
      case "token":
        throw new GrammarError({ reason: "Unsupported", message: "free text and tokens cannot stand in a tool's input", path: "" })
    }
  }
}

/** What brings text into a grammar: regular whatever stands in it. */
const leaves: ReadonlySet<Ir.Node["kind"]> = new Set<Ir.Node["kind"]>(["and", "class", "lexeme", "not", "text"])

const anyEscaped = toNode(Regular.star(encode(Regular.anyCharacter)))

const pointsOf = (node: Extract<Ir.Node, { readonly kind: "class" }>): CodePoints.CodePoints => {
  const points = CodePoints.of(...node.ranges)
  return node.negated === true ? CodePoints.complement(points) : points
}

const grammarOf = (budget: Budget, syntax: string, definition: string): Ir.Grammar => {
  const builder = new GrammarBuilder(budget)
  switch (syntax) {
    case "lark":
      return builder.finish(Lark.compileInto(builder, definition), "grammar")
    case "regex": {
      const language = Pattern.whole(definition, { dialect: "python" }, (reason, message, offset) => {
        throw new GrammarError({ reason, message: `${message} (character ${offset + 1})`, path: "" })
      })
      return builder.finish({ kind: "lexeme", item: toNode(language) }, "pattern")
    }
    default:
      throw new GrammarError({ reason: "Unsupported", message: `grammars in ${syntax} are not known; lark and regex are`, path: "" })
  }
}

/**
 * The grammar of a tool's whole input.
 *
 * @throws GrammarError
 */
export const inputNodes = (
  builder: GrammarBuilder,
  { definition, syntax }: { readonly syntax: string; readonly definition: string },
  marksContent = false
): InputNodes => {
  const grammar = grammarOf(builder.budget, syntax, definition)
  const transplant = (options: Omit<TransplantOptions, "marksContent"> = {}) =>
    new Transplant(builder, grammar, { ...options, marksContent })
  return {
    escaped: () => transplant({ escape: true }).root(grammar),
    raw: (closer) => {
      const held = new CloserFree(grammar, closer)
      switch (held.exclusion) {
        case "needless":
          return transplant().root(grammar)
        case "whole": {
          const whole = closerFree(transplant().root(grammar), closer)
          return marksContent ? Ir.content(whole) : whole
        }
        case "parts": {
          const plain = transplant()
          const instead = (node: Ir.Node) => held.isRegular(node) ? closerFree(plain.node(node), closer) : undefined
          return transplant({ instead }).root(grammar)
        }
        case "impossible":
          throw new GrammarError({
            reason: "Unsupported",
            message: `a grammar that refers to itself cannot be kept from ${JSON.stringify(closer)}, which would end the input`,
            path: ""
          })
      }
    }
  }
}
