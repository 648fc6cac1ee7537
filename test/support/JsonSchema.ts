/** A JSON Schema, as far as the OpenAPI documents use it. `true` and absent schemas are written `{}`. */
export interface Node {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly default?: unknown
  readonly description?: string
  readonly anyOf?: ReadonlyArray<Node>
  readonly oneOf?: ReadonlyArray<Node>
  readonly allOf?: ReadonlyArray<Node>
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: Node | boolean
  readonly items?: Node
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
}

const keywords: ReadonlySet<string> = new Set([
  "$ref",
  "type",
  "enum",
  "const",
  "default",
  "description",
  "anyOf",
  "oneOf",
  "allOf",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "pattern",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum"
])

/** The schemas of a document, by name. */
export type Schemas = Readonly<Record<string, Node>>

export const resolve = (schemas: Schemas, node: Node): Node => {
  if (node.$ref === undefined) return node
  const found = schemas[node.$ref.slice(node.$ref.lastIndexOf("/") + 1)]
  if (found === undefined) throw new Error(`${node.$ref} is not in the document`)
  return resolve(schemas, found)
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value)

const typeHolds = (type: string, value: unknown): boolean => {
  switch (type) {
    case "null":
      return value === null
    case "array":
      return Array.isArray(value)
    case "object":
      return isRecord(value)
    case "integer":
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}

const numberHolds = (node: Node, value: number): boolean =>
  value >= (node.minimum ?? -Infinity) && value <= (node.maximum ?? Infinity) &&
  value > (node.exclusiveMinimum ?? -Infinity) && value < (node.exclusiveMaximum ?? Infinity)

const stringHolds = (node: Node, value: string): boolean =>
  value.length >= (node.minLength ?? 0) && value.length <= (node.maxLength ?? Infinity) &&
  (node.pattern === undefined || new RegExp(node.pattern, "u").test(value))

/** Whether a JSON value is what a schema allows. A keyword that this does not know is an error, never passed over. */
export const holds = (schemas: Schemas, schema: Node, value: unknown): boolean => {
  const node = resolve(schemas, schema)
  const unknown = Object.keys(node).find((name) => !keywords.has(name))
  if (unknown !== undefined) throw new Error(`unknown keyword ${unknown}`)
  const check = (inner: Node, own: unknown) => holds(schemas, inner, own)
  const types = node.type === undefined ? [] : typeof node.type === "string" ? [node.type] : node.type
  if (types.length > 0 && !types.some((type) => typeHolds(type, value))) return false
  if (node.enum !== undefined && !node.enum.includes(value)) return false
  if (node.const !== undefined && node.const !== value) return false
  if (node.anyOf !== undefined && !node.anyOf.some((inner) => check(inner, value))) return false
  if (node.oneOf !== undefined && node.oneOf.filter((inner) => check(inner, value)).length !== 1) return false
  if (node.allOf?.every((inner) => check(inner, value)) === false) return false
  if (typeof value === "number") return numberHolds(node, value)
  if (typeof value === "string") return stringHolds(node, value)
  if (Array.isArray(value)) {
    const { items } = node
    return value.length >= (node.minItems ?? 0) && value.length <= (node.maxItems ?? Infinity) &&
      (items === undefined || value.every((item) => check(items, item)))
  }
  if (!isRecord(value)) return true
  const { additionalProperties: others, properties = {} } = node
  return (node.required ?? []).every((name) => Object.hasOwn(value, name)) &&
    Object.entries(value).every(([name, own]) => {
      const inner = Object.hasOwn(properties, name) ? properties[name] : others
      return inner === undefined || inner === true || (inner !== false && check(inner, own))
    })
}
