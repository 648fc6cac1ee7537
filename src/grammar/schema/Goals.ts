import * as Derivatives from "../Derivatives.ts"
import type { ArrayCase, Goal, ObjectCase } from "./SchemaCase.ts"
import { isObject, type Place } from "./SchemaDocument.ts"

export const keyOf = (goal: Goal): string => goal.map(({ id }) => id).join()

/** The goal of these schemas, each once; those that allow everything drop out. */
export const goalOf = (places: ReadonlyArray<Place>): Goal => {
  const kept = places.filter(({ schema }) => schema !== true && !(isObject(schema) && isBlank(schema)))
  return kept.length < 2 ? kept : [...new Set(kept)].toSorted((a, b) => a.id - b.id)
}

const isBlank = (schema: object): boolean => {
  for (const _ in schema) return false
  return true
}

/** What the element at an index has to satisfy. */
export const elementGoal = ({ layers }: ArrayCase, index: number): Goal =>
  goalOf(layers.flatMap(({ prefix, rest }) => prefix[index] ?? rest ?? []))

/** What the property of a name has to satisfy. */
export const propertyGoal = ({ layers }: ObjectCase, name: string): Goal =>
  goalOf(layers.flatMap(({ others, patterns, properties }) => {
    const own = properties.get(name)
    const matching = patterns.flatMap(({ language, place }) => Derivatives.matches(language, name) ? [place] : [])
    if (own === undefined && matching.length === 0) return others ?? []
    return own === undefined ? matching : [own, ...matching]
  }))
