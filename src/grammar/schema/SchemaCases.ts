import type { Budget } from "../Budget.ts"
import * as Derivatives from "../Derivatives.ts"
import * as Regular from "../Regular.ts"
import { arrayDifference, arrayIntersection, objectIntersection, stringIntersection } from "./CaseAlgebra.ts"
import { elementGoal, goalOf, keyOf, propertyGoal } from "./Goals.ts"
import { Keywords } from "./Keywords.ts"
import { numberDifference, numberHolds, numberIntersection, numberPossible, pointsDifference } from "./NumberCases.ts"
import { canonical, type Case, type Goal, languageOf, type ObjectCase, type ValuesCase } from "./SchemaCase.ts"
import { fail, isObject, type Place, type SchemaDocument } from "./SchemaDocument.ts"

type Cases = ReadonlyArray<Case>

/** Cases of one goal. */
const mostCases = 2000

/** Applicators in applicators, without a property or an element between. */
const deepestApplicator = 150

/** Arrays and objects in a value of `enum` or `const`. */
const deepestValue = 200

/** Characters of all values of one `enum`. */
const mostValueCharacters = 1_000_000

/** Levels that a proof of disjointness looks down. */
const proofDepth = 3

/** A proof came back to a schema that is still being read: it tells nothing. */
class StillOpen extends Error {}

/** Turns goals into cases: everything that schemas say in place is worked out here. */
export class SchemaCases {
  readonly #document: SchemaDocument
  readonly #budget: Budget
  readonly keywords: Keywords
  readonly #byPlace = new Map<Place, Cases>()
  readonly #byGoal = new Map<string, Cases>()
  readonly #open = new Set<Place>()
  #proofs = 0

  constructor(document: SchemaDocument, budget: Budget) {
    this.#document = document
    this.#budget = budget
    this.keywords = new Keywords(document)
  }

  /** Every way to satisfy all schemas of a goal. */
  expand(goal: Goal): Cases {
    const [only] = goal
    if (goal.length === 1 && only !== undefined) return this.#expandPlace(only)
    const key = keyOf(goal)
    const known = this.#byGoal.get(key)
    if (known !== undefined) return known
    const made = goal.length === 0
      ? this.keywords.cases(this.#document.root, {})
      : goal.map((place) => this.#expandPlace(place)).reduce((all, cases) => this.#product(all, cases, only))
    this.#byGoal.set(key, made)
    return made
  }

  /** Whether a value satisfies a goal. */
  accepts(goal: Goal, value: unknown): boolean {
    this.#budget.step()
    return this.expand(goal).some((own) => this.holds(own, value))
  }

  holds(own: Case, value: unknown): boolean {
    switch (own.type) {
      case "values":
        return own.values.some((known) => canonical(known) === canonical(value))
      case "number":
        return typeof value === "number" && numberHolds(own, value)
      case "string": {
        if (typeof value !== "string") return false
        const { length } = [...value]
        return length >= own.min && length <= own.max &&
          own.languages.every((language) => Derivatives.matches(language, value, this.#budget)) &&
          !own.excluded.some((language) => Derivatives.matches(language, value, this.#budget))
      }
      case "array":
        return Array.isArray(value) && value.length >= own.min && value.length <= own.max &&
          value.every((item, index) => this.accepts(elementGoal(own, index), item)) &&
          own.contains.every((place) => value.some((item) => this.accepts(goalOf([place]), item))) &&
          (own.unique === undefined || new Set(value.map(canonical)).size === value.length)
      case "object": {
        if (!isObject(value)) return false
        const names = Object.keys(value)
        return names.length >= own.min && names.length <= own.max && [...own.required].every((name) => Object.hasOwn(value, name)) &&
          names.every((name) => this.accepts(goalOf(own.names), name) && this.accepts(propertyGoal(own, name), value[name]))
      }
    }
  }

  #expandPlace(place: Place): Cases {
    const known = this.#byPlace.get(place)
    if (known !== undefined) return known
    if (this.#open.has(place)) {
      if (this.#proofs > 0) throw new StillOpen()
      return fail("Invalid", place, [], "the schema refers to itself without a property or an element between")
    }
    if (this.#open.size >= deepestApplicator) {
      return fail("TooLarge", place, [], `schemas that apply in place are nested deeper than ${deepestApplicator}`)
    }
    this.#budget.step()
    this.#open.add(place)
    try {
      const made = this.#read(place)
      this.#byPlace.set(place, made)
      return made
    } finally {
      this.#open.delete(place)
    }
  }

  #read(place: Place): Cases {
    const { schema } = place
    if (schema === true) return this.expand([])
    if (schema === false) return []
    if (!isObject(schema)) return fail("Invalid", place, [], "a schema is an object or a boolean")
    let cases = this.keywords.cases(place, schema)
    const narrow = (other: Cases): void => {
      cases = this.#product(cases, other, place)
    }
    const child = (value: unknown, ...keys: ReadonlyArray<string | number>) => this.#document.child(place, value, ...keys)
    const list = (keyword: string): ReadonlyArray<Place> => {
      const value = schema[keyword]
      if (!Array.isArray(value) || value.length === 0) return fail("Invalid", place, [keyword], "must be an array of at least one schema")
      return value.map((inner, index) => child(inner, keyword, index))
    }
    if (schema.enum !== undefined) {
      if (!Array.isArray(schema.enum)) return fail("Invalid", place, ["enum"], "must be an array")
      narrow([{ type: "values", values: this.#values(place, schema.enum, "enum") }])
    }
    if (schema.const !== undefined) narrow([{ type: "values", values: this.#values(place, [schema.const], "const") }])
    if (schema.$ref !== undefined) {
      if (typeof schema.$ref !== "string") return fail("Invalid", place, ["$ref"], "must be a string")
      narrow(this.#expandPlace(this.#document.resolve(place, "$ref", schema.$ref)))
    }
    if (schema.allOf !== undefined) { for (const part of list("allOf")) narrow(this.#expandPlace(part)) }
    if (schema.anyOf !== undefined) narrow(this.#union(list("anyOf").map((part) => this.#expandPlace(part))))
    if (schema.oneOf !== undefined) narrow(this.#exclusive(place, list("oneOf").map((part) => this.#expandPlace(part))))
    if (schema.not !== undefined) cases = this.#without(place, "not", cases, this.#expandPlace(child(schema.not, "not")))
    if (schema.if !== undefined && (schema.then !== undefined || schema.else !== undefined)) {
      const condition = this.#expandPlace(child(schema.if, "if"))
      const positive = schema.then === undefined
        ? condition
        : this.#product(condition, this.#expandPlace(child(schema.then, "then")), place)
      const negative = this.#without(place, "if", this.expand([]), condition)
      narrow([
        ...positive,
        ...(schema.else === undefined ? negative : this.#product(negative, this.#expandPlace(child(schema.else, "else")), place))
      ])
    }
    for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"]) {
      const dependents = schema[keyword]
      if (dependents === undefined) continue
      if (!isObject(dependents)) return fail("Invalid", place, [keyword], "must be an object")
      for (const [name, dependent] of Object.entries(dependents)) {
        const isList = keyword === "dependentRequired" || (keyword === "dependencies" && Array.isArray(dependent))
        const consequence = isList
          ? this.#requiring(place, this.keywords.names(place, dependent, keyword, name))
          : this.#expandPlace(child(dependent, keyword, name)).filter((own) => own.type === "object" || own.type === "values")
        narrow([
          ...this.expand([]).flatMap((own) => own.type === "object" ? this.#forbidding({ ...own, place }, name) : [own]),
          ...consequence
        ])
      }
    }
    return cases
  }

  #values(place: Place, values: ReadonlyArray<unknown>, keyword: string): ReadonlyArray<unknown> {
    const byText = new Map<string, unknown>()
    let characters = 0
    for (const [index, value] of values.entries()) {
      this.#budget.step()
      if (depthOf(value) > deepestValue) return fail("TooLarge", place, [keyword, index], `is nested deeper than ${deepestValue}`)
      const text = canonical(value)
      characters += text.length
      if (characters > mostValueCharacters) return fail("TooLarge", place, [keyword], `has more than ${mostValueCharacters} characters`)
      byText.set(text, value)
    }
    return [...byText.values()]
  }

  /** @throws GrammarError where the cases grow too many. */
  #limited(cases: Cases, place: Place | undefined): Cases {
    if (cases.length > mostCases && place !== undefined) {
      return fail("TooLarge", place, [], `its alternatives combine to more than ${mostCases} cases`)
    }
    return cases
  }

  #union(all: ReadonlyArray<Cases>): Cases {
    const values = all.flat().flatMap((own) => own.type === "values" ? own.values : [])
    const distinct = values.length < 2 ? values : [...new Map(values.map((value) => [canonical(value), value])).values()]
    const others = all.flat().filter((own) => own.type !== "values")
    return distinct.length === 0 ? others : [...others, { type: "values", values: distinct }]
  }

  #product(left: Cases, right: Cases, place: Place | undefined): Cases {
    const both: Array<Case> = []
    for (const a of left) {
      for (const b of right) {
        this.#budget.step()
        const common = this.intersection(a, b)
        if (common !== undefined) both.push(common)
      }
      this.#limited(both, place)
    }
    return both
  }

  /** What satisfies both cases; undefined where nothing does, as far as one level shows. */
  intersection(a: Case, b: Case): Case | undefined {
    if (a.type === "values" && b.type === "values") {
      const texts = new Set(b.values.map(canonical))
      return valuesCase(a.values.filter((value) => texts.has(canonical(value))))[0]
    }
    if (a.type === "values") return valuesCase(a.values.filter((value) => this.#heldBy(b, value)))[0]
    if (b.type === "values") return valuesCase(b.values.filter((value) => this.#heldBy(a, value)))[0]
    if (a.type === "number" && b.type === "number") return numberIntersection(a, b)
    if (a.type === "string" && b.type === "string") return stringIntersection(a, b)
    if (a.type === "array" && b.type === "array") return arrayIntersection(a, b)
    if (a.type === "object" && b.type === "object") return objectIntersection(a, b)
    return undefined
  }

  #heldBy(own: Case, value: unknown): boolean {
    this.#budget.step()
    return this.holds(own, value)
  }

  /** The values that satisfy exactly one of the alternatives. */
  #exclusive(place: Place, alternatives: ReadonlyArray<Cases>): Cases {
    const counts = new Map<string, number>()
    for (const cases of alternatives) {
      const texts = new Set(cases.flatMap((own) => own.type === "values" ? own.values.map(canonical) : []))
      for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
    }
    const those = (areValues: boolean) =>
      alternatives.map((cases, index) => [index, cases.filter((own) => (own.type === "values") === areValues)] as const)
        .filter(([, cases]) => cases.length > 0)
    const [others, listed] = [those(false), those(true)]
    return this.#limited(
      this.#union(alternatives.map((cases, index) => {
        let left: Cases = cases.flatMap<Case>((own) =>
          own.type === "values" ? valuesCase(own.values.filter((value) => counts.get(canonical(value)) === 1)) : [own]
        )
        for (const [other, rest] of others) if (other !== index) left = this.#without(place, "oneOf", left, rest)
        if (left.every((own) => own.type === "values")) return left
        for (const [other, rest] of listed) if (other !== index) left = this.#without(place, "oneOf", left, rest)
        return left
      })),
      place
    )
  }

  #without(place: Place, keyword: string, cases: Cases, excluded: Cases): Cases {
    let left = cases
    for (const other of excluded) {
      left = this.#limited(left.flatMap((own) => this.#difference(place, keyword, own, other)), place)
    }
    return left
  }

  #difference(place: Place, keyword: string, from: Case, excluded: Case): Cases {
    this.#budget.step()
    const inexpressible = () =>
      fail(
        "Unsupported",
        place,
        [keyword],
        keyword === "oneOf"
          ? "its alternatives may overlap, and what satisfies exactly one of them cannot be enforced; anyOf can"
          : "what does not satisfy this schema cannot be enforced"
      )
    if (from.type === "values") return valuesCase(from.values.filter((value) => !this.#heldBy(excluded, value)))
    const common = this.intersection(from, excluded)
    if (common === undefined || !this.#possible(common, proofDepth)) return [from]
    if (from.type === "string") {
      if (excluded.type !== "string" && common.type !== "values") return inexpressible()
      const language = excluded.type === "string"
        ? languageOf(excluded)
        : Regular.choice(
          common.type === "values" ? common.values.flatMap((value) => typeof value === "string" ? [Regular.text(value)] : []) : []
        )
      return language === Regular.everything ? [] : [{ ...from, excluded: [...from.excluded, language] }]
    }
    if (from.type === "number" && excluded.type === "number") return numberDifference(from, excluded) ?? inexpressible()
    if (from.type === "number" && common.type === "values") return pointsDifference(from, common) ?? inexpressible()
    if (from.type === "array" && excluded.type === "array") return arrayDifference(from, excluded) ?? inexpressible()
    if (from.type === "object" && excluded.type === "object") return this.#objectDifference(from, excluded) ?? inexpressible()
    return inexpressible()
  }

  /** Objects that have these properties. */
  #requiring(place: Place, names: ReadonlyArray<string>): Cases {
    return this.expand([]).flatMap((own) => own.type === "object" ? [{ ...own, required: new Set(names), place }] : [])
  }

  /** `from` without a property. */
  #forbidding(from: ObjectCase, name: string): Cases {
    if (from.required.has(name)) return []
    return [this.#refining(from, name, false)]
  }

  #refining(from: ObjectCase, name: string, schema: unknown): ObjectCase {
    const properties = new Map([[name, this.#document.child(from.place, schema, "properties", name)]])
    return { ...from, layers: [...from.layers, { properties, patterns: [], others: undefined }] }
  }

  /** Objects that lack a required property, have a wrong one, or are too small or large. */
  #objectDifference(from: ObjectCase, excluded: ObjectCase): Cases | undefined {
    if (excluded.names.length > 0 || excluded.layers.some(({ others, patterns }) => patterns.length > 0 || others !== undefined)) {
      return undefined
    }
    const left: Array<Case> = [...excluded.required].flatMap((name) => this.#forbidding(from, name))
    for (const [name, property] of excluded.layers.flatMap(({ properties }) => [...properties])) {
      const refined = this.#refining(from, name, { not: property.schema })
      left.push({ ...refined, required: new Set([...from.required, name]) })
    }
    if (excluded.min > 0) left.push({ ...from, max: Math.min(from.max, excluded.min - 1) })
    if (excluded.max < Infinity) left.push({ ...from, min: Math.max(from.min, excluded.max + 1) })
    return left
  }

  /** Whether a case may have a value, looking `depth` levels down; true where that does not tell. */
  #possible(own: Case, depth: number): boolean {
    this.#budget.step()
    switch (own.type) {
      case "values":
        return own.values.length > 0
      case "number":
        return numberPossible(own)
      case "string":
        return Derivatives.isNever(languageOf(own), this.#budget) !== true
      case "array": {
        if (own.min > own.max) return false
        if (depth === 0) return true
        for (let index = 0; index < Math.min(own.min, 16); index++) if (!this.#satisfiable(elementGoal(own, index), depth - 1)) return false
        return true
      }
      case "object": {
        if (own.min > own.max || own.required.size > own.max) return false
        if (depth === 0) return true
        return [...own.required].every((name) =>
          this.accepts(goalOf(own.names), name) && this.#satisfiable(propertyGoal(own, name), depth - 1)
        )
      }
    }
  }

  #satisfiable(goal: Goal, depth: number): boolean {
    this.#proofs++
    try {
      return this.expand(goal).some((own) => this.#possible(own, depth))
    } catch (error) {
      if (error instanceof StillOpen) return true
      throw error
    } finally {
      this.#proofs--
    }
  }

  /** Whether one level of a case already shows that nothing satisfies it. */
  isImpossible(own: Case): boolean {
    return !this.#possible(own, 0)
  }
}

const valuesCase = (values: ReadonlyArray<unknown>): ReadonlyArray<ValuesCase> => values.length === 0 ? [] : [{ type: "values", values }]

const depthOf = (value: unknown): number => {
  let depth = 0
  let level: ReadonlyArray<unknown> = [value]
  while (level.length > 0 && depth <= deepestValue) {
    level = level.flatMap((item) => typeof item === "object" && item !== null ? Object.values(item) : [])
    depth++
  }
  return depth
}
