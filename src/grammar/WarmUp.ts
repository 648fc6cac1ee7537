import type { Tool } from "../domain/Tool.ts"

/** Schemas as tools have them, in pieces of a few milliseconds each. Between them they need most of the code that real ones do. */
export const warmUpTools: ReadonlyArray<ReadonlyArray<Tool>> = [
  [{ name: "read", parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] } }],
  [{
    name: "search",
    parameters: {
      type: "object",
      properties: {
        mode: { type: "string", enum: ["text", "files"] },
        limit: { type: "integer", minimum: 1, maximum: 100, exclusiveMaximum: 200 },
        ratio: { type: "number", minimum: 0.5 },
        exact: { type: "boolean", default: false },
        nothing: { type: "null" }
      },
      required: ["mode"],
      additionalProperties: false
    }
  }],
  [{
    name: "edit",
    parameters: {
      type: "object",
      properties: {
        edits: {
          type: "array",
          minItems: 1,
          items: { type: "object", properties: { old: { type: "string" }, new: { type: "string" } }, required: ["old", "new"] }
        },
        label: { anyOf: [{ type: "string", minLength: 1, maxLength: 20 }, { type: "null" }] },
        env: { type: "object", additionalProperties: { type: "string" } }
      }
    }
  }, { name: "ping" }]
]
