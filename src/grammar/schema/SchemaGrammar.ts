import type { Budget } from "../Budget.ts"
import { numbers } from "../DecimalText.ts"
import * as Derivatives from "../Derivatives.ts"
import type { GrammarBuilder } from "../GrammarBuilder.ts"
import { multiples } from "../IntegerMultiples.ts"
import { integers, mostDigits } from "../IntegerText.ts"
import * as Ir from "../Ir.ts"
import type { JsonSchemaOptions } from "../JsonSchema.ts"
import { JsonLayout } from "../JsonText.ts"
import * as Regular from "../Regular.ts"
import { toNode } from "../RegularNode.ts"
import type { ArgumentsLayout, ValueLayout } from "../ValueLayout.ts"
import { elementGoal, goalOf, keyOf, propertyGoal } from "./Goals.ts"
import {
  type ArrayCase,
  canonical,
  type Case,
  type Goal,
  integerBounds,
  languageOf,
  type NumberCase,
  type ObjectCase,
  type StringCase
} from "./SchemaCase.ts"
import { SchemaCases } from "./SchemaCases.ts"
import { fail, type Place, SchemaDocument } from "./SchemaDocument.ts"

/** `patternProperties` of one object: every combination of them has values of its own. */
const mostPatterns = 5

/** Positions of an element that `contains` is tried at. */
const mostContained = 64

/** Elements of a prefix, each of which may end the array. */
const mostPrefix = 10_000

const nothing: Ir.Node = Ir.choice()
const empty: Ir.Node = Ir.text("")

/** Compiles schemas of one document to nodes, with a rule for each array and object in them. */
export class SchemaGrammar {
  readonly #builder: GrammarBuilder
  readonly #budget: Budget
  readonly #document: SchemaDocument
  readonly #cases: SchemaCases
  readonly #layout: ValueLayout
  readonly #options: JsonSchemaOptions
  readonly #nodes = new Map<string, Ir.Node>()
  readonly #pending: Array<{ readonly name: string; readonly cases: ReadonlyArray<Case> }> = []

  constructor(schema: unknown, builder: GrammarBuilder, options: JsonSchemaOptions) {
    const { budget } = builder
    this.#builder = builder
    this.#budget = budget
    this.#options = options
    this.#document = new SchemaDocument(schema, budget)
    this.#cases = new SchemaCases(this.#document, budget)
    this.#layout = options.layout ?? new JsonLayout(options.whitespace ?? "spaced")
  }

  /** The document's schema as a node. */
  compile(): Ir.Node {
    const root = this.#node(goalOf([this.#document.root]))
    this.#definePending()
    return root
  }

  /** The properties of the document's objects, each written as one argument. */
  compileArguments(layout: ArgumentsLayout): Ir.Node {
    const cases = this.#cases.expand(goalOf([this.#document.root])).filter((own) => !this.#cases.isImpossible(own))
    const objects = cases.filter((own) => own.type === "object")
    if (objects.length === 0) return fail("Unsupported", this.#document.root, [], "arguments have to be an object")
    const root = choiceOf(
      objects.map((own) =>
        this.#properties(own, layout.separator, (names, goal) => layout.argument(names, (name) => this.#argument(goal, name, layout)))
      )
    )
    this.#definePending()
    return root
  }

  #definePending(): void {
    for (const { cases, name } of this.#pending) {
      this.#budget.check()
      this.#builder.define(name, choiceOf(cases.map((own) => this.#case(own))))
    }
  }

  /** A value as an argument: strings as the layout writes them, everything else as a value within. */
  #argument(goal: Goal, name: string | undefined, { text }: ArgumentsLayout): Ir.Node {
    if (text === undefined) return this.#node(goal)
    const own = text(name)
    const cases = this.#cases.expand(goal).filter((one) => !this.#cases.isImpossible(one))
    const texts = cases.flatMap((one) =>
      one.type === "string"
        ? [own.string(languageOf(one))]
        : one.type === "values"
        ? one.values.flatMap((value) => typeof value === "string" ? [own.string(Regular.text(value))] : [])
        : []
    )
    if (own.only) return choiceOf(texts)
    const others = cases.flatMap((one): ReadonlyArray<Case> => {
      if (one.type === "string") return []
      if (one.type !== "values") return [one]
      const values = one.values.filter((value) => typeof value !== "string")
      return values.length === 0 ? [] : [{ ...one, values }]
    })
    const plain = texts.length === 0 ? [this.#node(goal)] : others.map((one) => this.#case(one))
    return choiceOf([...texts, ...own.other === undefined ? plain : plain.map(own.other)])
  }

  #node(goal: Goal): Ir.Node {
    this.#budget.step()
    const key = keyOf(goal)
    const known = this.#nodes.get(key)
    if (known !== undefined) return known
    const cases = this.#cases.expand(goal).filter((own) => !this.#cases.isImpossible(own))
    const isScalar = cases.every((own) => own.type !== "array" && own.type !== "object")
    const name = isScalar ? undefined : this.#builder.fresh(nameOf(goal))
    const node = name === undefined ? choiceOf(cases.map((own) => this.#case(own))) : Ir.rule(name)
    this.#nodes.set(key, node)
    if (name !== undefined) this.#pending.push({ name, cases })
    return node
  }

  #case(own: Case): Ir.Node {
    switch (own.type) {
      case "values":
        return this.#content(choiceOf(own.values.map((value) => {
          this.#budget.step()
          return this.#layout.literal(value)
        })))
      case "number":
        return this.#content(this.#number(own))
      case "string":
        return this.#content(this.#string(own))
      case "array":
        return this.#array(own)
      case "object":
        return this.#object(own)
    }
  }

  #content(node: Ir.Node): Ir.Node {
    return this.#options.marksContent === true ? Ir.content(node) : node
  }

  #string(own: StringCase): Ir.Node {
    return this.#layout.string(languageOf(own))
  }

  #number(own: NumberCase): Ir.Node {
    const { max, min, multiple, place } = own
    this.#budget.check()
    if (min !== undefined && min.value >= 10 ** mostDigits) {
      return fail("Unsupported", place, ["minimum"], `numbers of more than ${mostDigits} digits cannot be enforced`)
    }
    if (max !== undefined && max.value <= -(10 ** mostDigits)) {
      return fail("Unsupported", place, ["maximum"], `numbers of more than ${mostDigits} digits cannot be enforced`)
    }
    if (!own.integer) {
      const language = numbers(min, max, multiple)
      return language === undefined
        ? fail("Unsupported", place, ["multipleOf"], "multiples of this number cannot be enforced")
        : { kind: "lexeme", item: toNode(language) }
    }
    const { high, low } = integerBounds(own)
    const bound = (value: number) => Number.isFinite(value) ? BigInt(value) : undefined
    if (multiple === undefined || multiple.unit === 1n) return { kind: "lexeme", item: toNode(integers(bound(low), bound(high))) }
    return multiples(bound(low), bound(high), multiple.unit, this.#builder) ??
      fail("TooLarge", place, ["multipleOf"], "multiples of this number need too large an automaton")
  }

  #array(own: ArrayCase): Ir.Node {
    if (own.unique !== undefined && own.max > 1) return this.#uniqueArray(own, own.unique)
    const [contained, second] = own.contains
    if (contained !== undefined) {
      if (second !== undefined) return fail("Unsupported", contained, [], "only one schema can be enforced on some element")
      return this.#containing(own, contained)
    }
    const prefix = Math.max(0, ...own.layers.map((layer) => layer.prefix.length))
    if (prefix > mostPrefix) {
      return fail(
        "TooLarge",
        own.layers[0]?.prefix[0] ?? this.#document.root,
        [],
        `an array has more than ${mostPrefix} elements of its own`
      )
    }
    const rest = this.#node(elementGoal(own, prefix))
    const { comma } = this.#layout
    const remaining = (max: number, used: number) => max === Infinity ? null : max - used
    const after = (used: number): Ir.Node =>
      own.max <= used ? empty : Ir.repeat(Ir.sequence(comma, rest), Math.max(0, own.min - used), remaining(own.max, used))
    if (prefix === 0) {
      if (own.max === 0) return this.#layout.enclosed("[", empty, "]")
      const elements = Ir.sequence(rest, after(1))
      return this.#layout.enclosed("[", own.min === 0 ? Ir.optional(elements) : elements, "]")
    }
    let tail = after(prefix)
    for (let index = prefix - 1; index >= 0; index--) {
      if (index >= own.max) tail = empty
      else {
        const element = this.#node(elementGoal(own, index))
        const here = Ir.sequence(...(index === 0 ? [] : [comma]), element, tail)
        tail = index < own.min ? here : Ir.optional(here)
        if (index % 16 === 8) {
          const name = this.#builder.fresh("elements")
          this.#builder.define(name, tail)
          tail = Ir.rule(name)
        }
      }
    }
    return this.#layout.enclosed("[", tail, "]")
  }

  /** Distinct elements out of a finite list. */
  #uniqueArray(own: ArrayCase, unique: Place): Ir.Node {
    const inexpressible = () => fail("Unsupported", unique, ["uniqueItems"], "can be enforced only where the items are a list of constants")
    if (own.layers.some(({ prefix }) => prefix.length > 0) || own.contains.length > 0) return inexpressible()
    const cases = this.#cases.expand(elementGoal(own, 0))
    const values = new Map(cases.flatMap((item) => item.type === "values" ? item.values : []).map((value) => [canonical(value), value]))
    if (cases.some((item) => item.type !== "values")) return inexpressible()
    return this.#layout.enclosed("[", {
      kind: "permutation",
      items: [...values.values()].map((value) => ({ node: this.#content(this.#layout.literal(value)) })),
      separator: this.#layout.comma,
      min: own.min,
      max: own.max === Infinity ? null : own.max
    }, "]")
  }

  /** An array with at least one element of another kind, wherever it stands. */
  #containing(own: ArrayCase, contained: Place): Ir.Node {
    if (own.layers.some(({ prefix }) => prefix.length > 0)) {
      return fail("Unsupported", contained, [], "cannot be enforced beside elements of a prefix")
    }
    const goal = elementGoal(own, 0)
    const item = this.#node(goal)
    const special = this.#node(goalOf([...goal, contained]))
    const { comma } = this.#layout
    const bounded = own.max !== Infinity
    const positions = bounded ? own.max : Math.max(1, own.min)
    if (positions > mostContained) return fail("TooLarge", contained, [], `can be enforced on arrays of at most ${mostContained} elements`)
    const branches: Array<Ir.Node> = []
    for (let before = 0; before < positions; before++) {
      const last = !bounded && before === positions - 1
      const lead = Ir.repeat(Ir.sequence(item, comma), before, last ? null : before)
      const following = Math.max(0, own.min - before - 1)
      branches.push(Ir.sequence(lead, special, Ir.repeat(Ir.sequence(comma, item), following, bounded ? own.max - before - 1 : null)))
    }
    return this.#layout.enclosed("[", choiceOf(branches), "]")
  }

  #object(own: ObjectCase): Ir.Node {
    const { comma } = this.#layout
    const property = (names: Regular.Regular, goal: Goal) => this.#layout.property(this.#layout.key(names), this.#node(goal))
    return this.#layout.enclosed("{", this.#properties(own, comma, property), "}")
  }

  /**
   * The properties of an object with a separator between two; `property` writes one whose name is in a language. A property that the schema names
   * comes at most once, and no other may have its name, in whatever spelling. Names that are in the language of others only may come again, since
   * an automaton cannot remember them; every value that comes under one of them satisfies the same schemas, so that it does not matter which a reader
   * takes.
   */
  #properties(own: ObjectCase, separator: Ir.Node, property: (names: Regular.Regular, goal: Goal) => Ir.Node): Ir.Node {
    const names = new Set([...own.layers.flatMap(({ properties }) => [...properties.keys()]), ...own.required])
    const allowed = own.names.length === 0 ? undefined : goalOf(own.names)
    const items: Array<Ir.PermutationItem> = []
    for (const name of names) {
      this.#budget.step()
      if (!name.isWellFormed()) fail("Unsupported", own.place, ["properties", name], "a name with half a surrogate pair cannot be written")
      const goal = propertyGoal(own, name)
      const value = allowed !== undefined && !this.#cases.accepts(allowed, name) ? nothing : this.#node(goal)
      const required = own.required.has(name)
      if (value === nothing && !required) continue
      const node = value === nothing ? nothing : property(Regular.text(name), goal)
      items.push({ node, ...(required ? { required } : {}) })
    }
    const named = items.length
    if (own.max > named || own.max > own.required.size) {
      const others = this.#others(own, names).map(({ goal, language }) => property(language, goal))
      if (others.length > 0) items.push({ node: choiceOf(others), many: true })
    }
    if (items.length > named && own.min > own.required.size + 1) {
      return fail(
        "Unsupported",
        own.place,
        ["minProperties"],
        "can be enforced only on the properties that are named, since others might repeat a name"
      )
    }
    return {
      kind: "permutation",
      items,
      separator,
      ordered: this.#options.order !== "free",
      ...(own.min > 0 ? { min: own.min } : {}),
      ...(own.max < Infinity ? { max: own.max } : {})
    }
  }

  /** The properties that are not named: a language of names and what their values satisfy, for each combination of patterns. */
  #others(own: ObjectCase, names: ReadonlySet<string>): ReadonlyArray<{ readonly language: Regular.Regular; readonly goal: Goal }> {
    if (
      this.#options.closed === true && own.layers.some(({ properties }) => properties.size > 0) &&
      own.layers.every(({ others }) => others === undefined)
    ) {
      return []
    }
    const patterns = new Map(own.layers.flatMap((layer) => layer.patterns.map((pattern) => [pattern.source, pattern])))
    if (patterns.size > mostPatterns) {
      return fail("TooLarge", own.place, ["patternProperties"], `more than ${mostPatterns} patterns on one object cannot be enforced`)
    }
    const listed = [...patterns.values()]
    const named = names.size === 0 ? [] : [Regular.not(Regular.choice([...names].map(Regular.text)))]
    const allowed = own.names.length === 0 ? [] : [Regular.choice(this.#cases.expand(goalOf(own.names)).flatMap(namesOf))]
    const found: Array<{ readonly language: Regular.Regular; readonly goal: Goal }> = []
    for (let combination = 0; combination < 2 ** listed.length; combination++) {
      const matched = listed.filter((_, index) => (combination >> index) % 2 === 1)
      const sources = new Set(matched.map(({ source }) => source))
      const goal = goalOf(own.layers.flatMap(({ others, patterns: ownPatterns }) => {
        const places = ownPatterns.flatMap(({ place, source }) => sources.has(source) ? [place] : [])
        return places.length === 0 ? others ?? [] : places
      }))
      if (goal.some(({ schema }) => schema === false)) continue
      const language = Regular.and([
        ...allowed,
        ...matched.map((pattern) => pattern.language),
        ...listed.filter((pattern) => !sources.has(pattern.source)).map((pattern) => Regular.not(pattern.language)),
        ...named
      ])
      if (Regular.isNever(language) || (language._tag === "And" && Derivatives.isNever(language, this.#budget) === true)) continue
      found.push({ language, goal })
    }
    return found
  }
}

/** The names that a case of `propertyNames` allows. */
const namesOf = (own: Case): ReadonlyArray<Regular.Regular> =>
  own.type === "string"
    ? [languageOf(own)]
    : own.type === "values"
    ? own.values.flatMap((value) => typeof value === "string" ? [Regular.text(value)] : [])
    : []

const choiceOf = (nodes: ReadonlyArray<Ir.Node>): Ir.Node => {
  const [only] = nodes
  return only === undefined ? nothing : nodes.length === 1 ? only : { kind: "choice", items: nodes }
}

/** A rule's name tells where its schema stands, for those who read the grammar. */
const nameOf = ([first]: Goal): string => {
  const keys: Array<string> = []
  for (let at = first; at?.parent !== undefined && keys.length < 4; at = at.parent) keys.push(at.key.slice(0, 40))
  return keys.length > 0 ? keys.toReversed().join(".") : first === undefined ? "json" : "schema"
}
