import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Tool } from "../../src/domain/Tool.ts"
import { projectRoot } from "../../src/engine/EnginePaths.ts"

/** A JSON Schema. */
export interface Subject {
  readonly name: string
  readonly schema: object
  /** What one tool of usual size has. */
  readonly typical: boolean
}

const object = (properties: Readonly<Record<string, object>>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false
})

const list = (items: object) => ({ type: "array", items, minItems: 4 })

const string = { type: "string" }
const boolean = { type: "boolean" }
const integer = { type: "integer" }

/** The first tools with a schema that a captured Claude Code declares. */
export const claudeCodeTools = (count: number): ReadonlyArray<Tool> => {
  const folder = join(projectRoot, "test/fixtures/captures/claude-code")
  const tools = new Map<string, Tool>()
  for (const file of readdirSync(folder).toSorted()) {
    const { request } = JSON.parse(readFileSync(join(folder, file), "utf8"))
    for (const { input_schema: parameters, name } of request.body?.tools ?? []) {
      if (parameters !== undefined && !tools.has(name)) tools.set(name, { name, parameters })
    }
  }
  return [...tools.values()].slice(0, count)
}

export const subjects = (tools: ReadonlyArray<Tool>): ReadonlyArray<Subject> => [
  {
    name: "weather tool",
    typical: true,
    schema: object({ city: string, unit: { enum: ["celsius", "fahrenheit"] }, days: integer }, ["city"])
  },
  {
    name: "edit tool",
    typical: true,
    schema: object({ file_path: string, old_string: string, new_string: string, replace_all: boolean }, [
      "file_path",
      "old_string",
      "new_string"
    ])
  },
  {
    name: "search tool",
    typical: true,
    schema: object({
      query: { type: "string", minLength: 2, maxLength: 60 },
      kinds: { type: "array", items: { enum: ["file", "folder", "symbol", "text"] }, minItems: 1 },
      since: { type: "string", format: "date" },
      case_sensitive: boolean,
      limit: integer
    }, ["query", "kinds", "limit"])
  },
  {
    name: "invoice, nested records",
    typical: true,
    schema: object({
      number: { type: "string", pattern: "^[A-Z]{3}-[0-9]{6}$" },
      customer: object({ name: string, address: object({ street: string, city: string, country: { enum: ["DE", "FR", "US", "JP"] } }) }),
      lines: { type: "array", items: object({ text: string, quantity: integer, price: { type: "number" }, taxed: boolean }), minItems: 1 },
      paid: boolean
    })
  },
  {
    name: "tree, recursive",
    typical: true,
    schema: {
      $defs: { node: object({ value: integer, label: string, children: { type: "array", items: { $ref: "#/$defs/node" } } }) },
      $ref: "#/$defs/node"
    }
  },
  {
    name: "lower-case letters, 1 to 200",
    typical: false,
    schema: list({ type: "string", pattern: "^[a-z]{1,200}$" })
  },
  {
    name: "at most 50 words",
    typical: false,
    schema: list({ type: "string", pattern: "^(\\w+\\s){0,50}$" })
  },
  {
    name: "pattern of words, 3 to 200 characters",
    typical: false,
    schema: list({ type: "string", pattern: "^\\w+([ -]\\w+)*$", minLength: 3, maxLength: 200 })
  },
  {
    name: "texts of at most 200 characters",
    typical: false,
    schema: list({ type: "string", maxLength: 200 })
  },
  {
    name: `${tools.length} tools of Claude Code`,
    typical: false,
    schema: { anyOf: tools.map(({ name, parameters }) => object({ name: { const: name }, arguments: Object(parameters) })) }
  }
]

/** Long names and few choices. */
export const rigidSchema = object(Object.fromEntries(
  [
    "acknowledged",
    "temperature_within_limits",
    "maintenance_required",
    "emergency_shutdown",
    "operator_present",
    "calibration_valid",
    "door_closed"
  ]
    .map((name) => [`status_of_${name}`, { enum: ["confirmed by the controller", "not available at this station"] }])
))
