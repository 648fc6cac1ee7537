/** A JSON Schema. */
export type Schema = boolean | { readonly [keyword: string]: unknown }

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value)

const equal = (a: unknown, b: unknown): boolean => {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]))
  if (isRecord(a)) {
    return isRecord(b) && Object.keys(a).length === Object.keys(b).length &&
      Object.keys(a).every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]))
  }
  return a === b
}

const types: Record<string, (value: unknown) => boolean> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  string: (value) => typeof value === "string",
  array: Array.isArray,
  object: isRecord
}

const schemas = (value: unknown): ReadonlyArray<Schema> => Array.isArray(value) ? value : []
const named = (value: unknown): ReadonlyArray<readonly [string, Schema]> =>
  isRecord(value) ? Object.entries(value) as Array<[string, Schema]> : []
const as = (value: unknown): Schema => value as Schema

/** Multiples in decimal, as the specification means them. */
const isMultiple = (value: number, of: number): boolean => {
  const scale = 10 ** Math.max(...[value, of].map((number) => `${number}`.split(".")[1]?.length ?? 0))
  return Math.round(value * scale) % Math.round(of * scale) === 0
}

/** Whether a value satisfies a schema, written from the specification with no part of the compiler. References are JSON pointers. */
export const valid = (root: Schema, schema: Schema, value: unknown): boolean => {
  if (typeof schema === "boolean") return schema
  const check = (inner: unknown, own: unknown = value) => valid(root, as(inner), own)
  const number = (keyword: string) => typeof schema[keyword] === "number" ? schema[keyword] : undefined
  if (typeof schema.$ref === "string") {
    const target = schema.$ref.slice(1).split("/").slice(1).reduce<unknown>(
      (at, key) => (at as Record<string, unknown>)[decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")],
      root
    )
    if (!check(target)) return false
  }
  if (schema.type !== undefined && !(schema.nullable === true && value === null)) {
    const allowed = Array.isArray(schema.type) ? schema.type : [schema.type]
    if (!allowed.some((type) => types[String(type)]?.(value) === true)) return false
  }
  if (Array.isArray(schema.enum) && !schema.enum.some((item) => equal(item, value))) return false
  if (schema.const !== undefined && !equal(schema.const, value)) return false
  if (!schemas(schema.allOf).every((inner) => check(inner))) return false
  if (schema.anyOf !== undefined && !schemas(schema.anyOf).some((inner) => check(inner))) return false
  if (schema.oneOf !== undefined && schemas(schema.oneOf).filter((inner) => check(inner)).length !== 1) return false
  if (schema.not !== undefined && check(schema.not)) return false
  if (schema.if !== undefined && !(check(schema.if) ? check(schema.then ?? true) : check(schema.else ?? true))) return false
  if (typeof value === "number") {
    const minimum = number("minimum") ?? -Infinity
    const maximum = number("maximum") ?? Infinity
    if (value < minimum || (schema.exclusiveMinimum === true && value === minimum)) return false
    if (value > maximum || (schema.exclusiveMaximum === true && value === maximum)) return false
    if (value <= (number("exclusiveMinimum") ?? -Infinity) || value >= (number("exclusiveMaximum") ?? Infinity)) return false
    const multipleOf = number("multipleOf")
    return multipleOf === undefined || isMultiple(value, multipleOf)
  }
  if (typeof value === "string") {
    const length = [...value].length
    if (length < (number("minLength") ?? 0) || length > (number("maxLength") ?? Infinity)) return false
    return typeof schema.pattern !== "string" || new RegExp(schema.pattern, "u").test(value)
  }
  if (Array.isArray(value)) {
    if (value.length < (number("minItems") ?? 0) || value.length > (number("maxItems") ?? Infinity)) return false
    const prefix = schemas(schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : []))
    const rest = Array.isArray(schema.items) ? schema.additionalItems ?? true : schema.items ?? true
    if (!value.every((item, index) => check(prefix[index] ?? rest, item))) return false
    if (schema.uniqueItems === true && value.some((item, index) => value.slice(0, index).some((other) => equal(item, other)))) return false
    return schema.contains === undefined || schema.minContains === 0 || value.some((item) => check(schema.contains, item))
  }
  if (!isRecord(value)) return true
  const names = Object.keys(value)
  if (names.length < (number("minProperties") ?? 0) || names.length > (number("maxProperties") ?? Infinity)) return false
  if (Array.isArray(schema.required) && !schema.required.every((name) => Object.hasOwn(value, String(name)))) return false
  if (!names.every((name) => check(schema.propertyNames ?? true, name))) return false
  for (const [name, dependents] of named(schema.dependentRequired)) {
    if (Object.hasOwn(value, name) && !Object.values(dependents).every((other) => Object.hasOwn(value, String(other)))) return false
  }
  for (const [name, dependent] of named(schema.dependentSchemas)) if (Object.hasOwn(value, name) && !check(dependent)) return false
  const properties = new Map(named(schema.properties))
  const patterns = named(schema.patternProperties).map(([source, inner]) => [new RegExp(source, "u"), inner] as const)
  return names.every((name) => {
    const own = [
      ...(properties.has(name) ? [properties.get(name)] : []),
      ...patterns.flatMap(([pattern, inner]) => pattern.test(name) ? [inner] : [])
    ]
    return own.length === 0 ? check(schema.additionalProperties ?? true, value[name]) : own.every((inner) => check(inner, value[name]))
  })
}
