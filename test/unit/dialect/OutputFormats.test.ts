import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { outputFormat, responseFormat } from "../../../src/dialect/OutputFormats.ts"

const schema = { type: "integer" }

const tag = { type: "structural_tag", structures: [{ begin: "<a>", end: "</a>", schema }], triggers: ["<a"] }

describe("what an answer has to be", () => {
  const asked: ReadonlyArray<readonly [Parameters<typeof outputFormat>[0], object | undefined]> = [
    [{}, undefined],
    [{ response_format: { type: "text" } }, undefined],
    [{ structured_outputs: {} }, undefined],
    [{ grammar: "" }, undefined],
    [{ response_format: { type: "json_object" } }, { _tag: "JsonObject", field: "response_format" }],
    [{ response_format: { type: "json_object", schema } }, { _tag: "JsonSchema", schema, field: "response_format.schema" }],
    [{ response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } } }, {
      _tag: "JsonSchema",
      schema,
      field: "response_format.json_schema.schema"
    }],
    [{ response_format: { type: "json_schema", schema } }, { _tag: "JsonSchema", schema, field: "response_format.schema" }],
    [{ response_format: { type: "structural_tag", structures: [{ begin: "<a>", end: "</a>", schema }], triggers: ["<a"] } }, {
      _tag: "Tags",
      triggers: ["<a"],
      tags: [{ begin: "<a>", end: "</a>", schema, field: "response_format.structures.0.schema" }],
      field: "response_format"
    }],
    [{ guided_json: schema }, { _tag: "JsonSchema", schema, field: "guided_json" }],
    [{ guided_json: JSON.stringify(schema) }, { _tag: "JsonSchema", schema, field: "guided_json" }],
    [{ json_schema: schema }, { _tag: "JsonSchema", schema, field: "json_schema" }],
    [{ guided_regex: "a" }, { _tag: "Regex", pattern: "a", field: "guided_regex" }],
    [{ guided_choice: ["a"] }, { _tag: "Choice", choices: ["a"], field: "guided_choice" }],
    [{ guided_grammar: "root ::= \"a\"" }, { _tag: "Grammar", syntax: "gbnf", text: "root ::= \"a\"", field: "guided_grammar" }],
    [{ guided_grammar: "start: \"a\"" }, { _tag: "Grammar", syntax: "lark", text: "start: \"a\"", field: "guided_grammar" }],
    [{ grammar: "root ::= x" }, { _tag: "Grammar", syntax: "gbnf", text: "root ::= x", field: "grammar" }],
    [{ structured_outputs: { json: schema } }, { _tag: "JsonSchema", schema, field: "structured_outputs.json" }],
    [{ structured_outputs: { json_object: true, regex: null } }, { _tag: "JsonObject", field: "structured_outputs.json_object" }],
    [{ structured_outputs: { regex: "a" } }, { _tag: "Regex", pattern: "a", field: "structured_outputs.regex" }],
    [{ structured_outputs: { choice: ["a"] } }, { _tag: "Choice", choices: ["a"], field: "structured_outputs.choice" }],
    ...[tag, JSON.stringify(tag)].map((structural_tag) =>
      [{ structured_outputs: { structural_tag } }, {
        _tag: "Tags",
        triggers: ["<a"],
        tags: [{ begin: "<a>", end: "</a>", schema, field: "structured_outputs.structural_tag.structures.0.schema" }],
        field: "structured_outputs.structural_tag"
      }] as const
    ),
    [{ structured_outputs: { grammar: "start: A" } }, {
      _tag: "Grammar",
      syntax: "lark",
      text: "start: A",
      field: "structured_outputs.grammar"
    }]
  ]
  for (const [body, expected] of asked) {
    it(JSON.stringify(body), () => assert.deepStrictEqual<unknown>(Result.getOrThrow(outputFormat(body)), expected))
  }

  const refused: ReadonlyArray<readonly [Parameters<typeof outputFormat>[0], string]> = [
    [{ response_format: { type: "yaml" } }, "response_format.type"],
    [{ response_format: { type: "json_schema" } }, "response_format.json_schema.schema"],
    [{ response_format: { type: "structural_tag", triggers: [] } }, "response_format.structures"],
    [{ response_format: { type: "structural_tag", structures: [] } }, "response_format.triggers"],
    [{ guided_json: "{" }, "guided_json"],
    [{ structured_outputs: { structural_tag: {} } }, "structured_outputs.structural_tag"],
    [{ structured_outputs: { structural_tag: "{" } }, "structured_outputs.structural_tag"],
    [{ structured_outputs: { structural_tag: { ...tag, triggers: [5] } } }, "structured_outputs.structural_tag"],
    [{ structured_outputs: { structural_tag: { format: { type: "any_text" } } } }, "structured_outputs.structural_tag.format"],
    [{ structured_outputs: { structural_tag: tag, regex: "a" } }, "structured_outputs.structural_tag"],
    [{ guided_regex: "a", guided_choice: ["b"] }, "guided_choice"],
    [{ response_format: { type: "json_object" }, grammar: "root ::= \"a\"" }, "grammar"]
  ]
  for (const [body, field] of refused) {
    it(`${field} is to blame in ${JSON.stringify(body)}`, () => {
      const decoded = outputFormat(body)
      assert.strictEqual(Result.isFailure(decoded) ? decoded.failure.field : undefined, field)
    })
  }

  it("in the dialects that put the schema beside the type", () => {
    assert.deepStrictEqual<unknown>(
      Result.getOrThrow(responseFormat({ type: "json_schema", schema }, "text.format", true)),
      { _tag: "JsonSchema", schema, field: "text.format.schema" }
    )
    const decoded = responseFormat({ type: "json_schema" }, "output_config.format", true)
    assert.strictEqual(Result.isFailure(decoded) ? decoded.failure.field : undefined, "output_config.format.schema")
    assert.isUndefined(Result.getOrThrow(responseFormat(null, "text.format", true)))
  })
})
