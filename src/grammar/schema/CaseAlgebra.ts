import type { ArrayCase, Case, ObjectCase, StringCase } from "./SchemaCase.ts"

export const stringIntersection = (a: StringCase, b: StringCase): StringCase | undefined => {
  const both: StringCase = {
    type: "string",
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    languages: [...new Set([...a.languages, ...b.languages])],
    excluded: [...new Set([...a.excluded, ...b.excluded])]
  }
  return both.min <= both.max ? both : undefined
}

export const arrayIntersection = (a: ArrayCase, b: ArrayCase): ArrayCase | undefined => {
  const unique = a.unique ?? b.unique
  const both: ArrayCase = {
    type: "array",
    layers: [...a.layers, ...b.layers],
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    contains: [...new Set([...a.contains, ...b.contains])],
    ...(unique === undefined ? {} : { unique })
  }
  return both.min <= both.max ? both : undefined
}

/** Arrays of another length; undefined where more than the length tells them apart. */
export const arrayDifference = (from: ArrayCase, excluded: ArrayCase): ReadonlyArray<Case> | undefined => {
  if (excluded.layers.length > 0 || excluded.contains.length > 0 || excluded.unique !== undefined) return undefined
  return [
    ...(excluded.min > from.min ? [{ ...from, max: Math.min(from.max, excluded.min - 1) }] : []),
    ...(excluded.max < from.max ? [{ ...from, min: Math.max(from.min, excluded.max + 1) }] : [])
  ].filter(({ max, min }) => min <= max)
}

export const objectIntersection = (a: ObjectCase, b: ObjectCase): ObjectCase | undefined => {
  const both: ObjectCase = {
    type: "object",
    layers: [...a.layers, ...b.layers],
    required: b.required.size === 0 ? a.required : new Set([...a.required, ...b.required]),
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    names: [...new Set([...a.names, ...b.names])],
    place: a.layers.length === 0 ? b.place : a.place
  }
  return both.min <= both.max ? both : undefined
}
