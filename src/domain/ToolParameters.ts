import type { Tool } from "./Tool.ts"

/** Names of JSON Schema's types. */
export type Types = ReadonlySet<string>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const ownValue = (object: unknown, key: string): unknown => isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined

const typeOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value

/** What a `$ref` inside the schema points to. */
const resolve = (root: unknown, reference: string): unknown =>
  reference === "#" || !reference.startsWith("#/") ? undefined : reference.slice(2).split("/").reduce(
    (place: unknown, part) => ownValue(place, part.replaceAll("~1", "/").replaceAll("~0", "~")),
    root
  )

/** Schemas that are looked at for one parameter; references may lead in circles. */
const mostSchemas = 64

/** The types that a schema names, its alternatives included; none where it does not say. */
const schemaTypes = (schema: unknown, root: unknown): Types => {
  const types = new Set<string>()
  const open: Array<unknown> = [schema]
  for (let looked = 0; open.length > 0 && looked < mostSchemas; looked++) {
    const own = open.pop()
    const type = ownValue(own, "type")
    const named = typeof type === "string" ? [type] : Array.isArray(type) ? type : []
    for (const name of named) if (typeof name === "string") types.add(name)
    if (ownValue(own, "nullable") === true) types.add("null")
    if (named.length === 0) {
      const values = ownValue(own, "enum")
      for (const value of Array.isArray(values) ? values : isObject(own) && Object.hasOwn(own, "const") ? [own["const"]] : []) {
        types.add(typeOf(value))
      }
    }
    for (const key of ["anyOf", "oneOf", "allOf"]) {
      const alternatives = ownValue(own, key)
      if (Array.isArray(alternatives)) open.push(...alternatives.slice(0, mostSchemas))
    }
    const reference = ownValue(own, "$ref")
    if (typeof reference === "string") open.push(resolve(root, reference))
  }
  return types
}

const python: ReadonlyMap<string, string> = new Map([["True", "true"], ["False", "false"], ["None", "null"]])

const parseJson = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

const has = (types: Types, value: unknown): boolean => {
  const type = typeOf(value)
  return types.has(type) || (type === "integer" && types.has("number"))
}

/** JSON of a value that was written as text, by its types: text where a string is meant or nothing else fits. */
export const typedJson = (text: string, types: Types): string => {
  const trimmed = text.trim()
  const json = python.get(trimmed) ?? trimmed
  const value = parseJson(json)
  if (value === undefined) return JSON.stringify(text)
  return types.has("string") && (typeof value === "string" || !has(types, value)) ? JSON.stringify(text) : json
}

/** How the parameters of one tool are written in syntaxes that mark no types. */
export interface ToolParameters {
  /** Types that the schema names for a parameter; none where it does not say. */
  readonly types: (key: string) => Types
  /** Always a string, whatever it looks like. */
  readonly isText: (key: string) => boolean
}

/** Types of the parameters of the offered tool of this name; without one, everything is a string. */
export const toolParameters = (tools: ReadonlyArray<Tool>, name: string): ToolParameters => {
  const schema = tools.find((tool) => tool.name === name)?.parameters
  const properties = ownValue(schema, "properties")
  const known = new Map<string, Types>()
  const typesOf = (key: string): Types => {
    const types = known.get(key) ?? schemaTypes(ownValue(properties, key), schema)
    known.set(key, types)
    return types
  }
  const isText = (key: string) => {
    const types = typesOf(key)
    return types.size === 0 || (types.size === 1 && types.has("string"))
  }
  return { types: typesOf, isText }
}
