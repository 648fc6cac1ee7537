import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { openApi } from "../../../schema/Api.ts"

describe("schema/openapi.json", () => {
  it("is what scripts/openapi.ts writes", () => {
    const stored = JSON.parse(readFileSync(new URL("../../../schema/openapi.json", import.meta.url), "utf8"))
    assert.deepStrictEqual(stored, JSON.parse(JSON.stringify(openApi())))
  })

  it("promises no 204, which no route answers", () => {
    assert.notInclude(JSON.stringify(openApi().paths), "\"204\":")
  })

  it("bounds every number of a request and closes no object", () => {
    const text = JSON.stringify(openApi())
    assert.notInclude(text, "\"additionalProperties\":false")
    const { properties } = openApi().components.schemas["ChatCompletionRequest"] as {
      readonly properties: Readonly<
        Record<string, { readonly type?: string; readonly maximum?: number; readonly exclusiveMaximum?: number }>
      >
    }
    for (const [name, schema] of Object.entries(properties)) {
      if ((schema.type === "integer" || schema.type === "number") && name !== "seed") {
        assert.isTrue(schema.maximum !== undefined || schema.exclusiveMaximum !== undefined, name)
      }
    }
  })
})
