import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { compile, type JsonSchemaOptions } from "../../../src/grammar/JsonSchema.ts"
import { GrammarMatcher } from "../../support/GrammarMatcher.ts"
import { GrammarWalk } from "../../support/GrammarWalk.ts"
import { random } from "../../support/Random.ts"
import { type Schema, valid } from "../../support/SchemaOracle.ts"

/** Objects that may have properties which the schema does not list. */
const open: ReadonlyArray<Schema> = [
  { type: "object", properties: { a: { type: "string" } }, additionalProperties: { type: "integer" } },
  { type: "object", properties: { a: { type: "string" } }, required: ["a", "b"], additionalProperties: { type: "integer" } },
  { type: "object", properties: { ab: { type: "integer" } }, patternProperties: { "^a": { minimum: 5 } } },
  { type: "object", properties: { a: { const: 1 } }, propertyNames: { enum: ["a", "b", "c"] }, additionalProperties: { type: "null" } },
  {
    type: "object",
    propertyNames: { pattern: "^[ab]$" },
    patternProperties: { a: { type: "boolean" } },
    additionalProperties: { const: 2 }
  },
  { type: "object", properties: { a: { type: "string" } }, minProperties: 1, maxProperties: 4, additionalProperties: { type: "integer" } },
  { allOf: [{ properties: { a: { type: "string" } } }, { type: "object", additionalProperties: { enum: ["x", "y"] } }] },
  JSON.parse(
    "{\"type\":\"object\",\"if\":{\"required\":[\"a\"]},\"then\":{\"required\":[\"b\"]},\"additionalProperties\":{\"type\":\"integer\"}}"
  )
]

const ways: ReadonlyArray<JsonSchemaOptions> = [{ whitespace: "compact" }, { order: "free", whitespace: "compact" }]

const matcher = (schema: Schema, options?: JsonSchemaOptions) => new GrammarMatcher(Result.getOrThrow(compile(schema, options)))

/** The names of the outermost object, in their order, as `JSON.parse` meets them. */
const namesOf = (text: string): ReadonlyArray<string> => {
  const names: Array<string> = []
  let depth = 0
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"(?=:)|"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === "{" || token === "[") depth++
    else if (token === "}" || token === "]") depth--
    else if (depth === 1) names.push(token)
  }
  return names
}

/** The same text with only the first property of each name. */
const firstOnly = (text: string): unknown => {
  const seen = new Map<string, unknown>()
  for (const [whole, name = "", value = ""] of text.matchAll(/("(?:[^"\\]|\\.)*"):("(?:[^"\\]|\\.)*"|[^,{}[\]]+)/gs)) {
    if (whole !== "" && !seen.has(name)) seen.set(name, JSON.parse(value))
  }
  return Object.fromEntries([...seen].map(([name, value]) => [JSON.parse(name), value]))
}

describe("names of properties", () => {
  it("that the schema lists come once, in one spelling, and under no other's schema", () => {
    for (const options of ways) {
      const own = matcher({ type: "object", properties: { a: { type: "string" } }, additionalProperties: { type: "integer" } }, options)
      assert.isTrue(own.matches("{\"a\":\"x\",\"b\":1}"))
      for (
        const text of [
          "{\"a\":\"x\",\"a\":\"y\"}",
          "{\"a\":\"x\",\"b\":1,\"a\":\"y\"}",
          "{\"a\":\"x\",\"a\":1}",
          "{\"b\":1,\"a\":1}",
          "{\"a\":1}",
          "{\"a\":\"x\",\"\\u0061\":1}",
          "{\"\\u0061\":1}"
        ]
      ) {
        assert.isFalse(own.matches(text), text)
      }
      const patterns = matcher(
        { type: "object", properties: { ab: { type: "integer" } }, patternProperties: { "^a": { minimum: 5 } } },
        options
      )
      assert.isTrue(patterns.matches("{\"ab\":6,\"ac\":\"any\"}"))
      for (const text of ["{\"ab\":6,\"ab\":7}", "{\"ab\":4}", "{\"ab\":6.5}", "{\"ac\":4}"]) assert.isFalse(patterns.matches(text), text)
    }
  })

  it("that it does not list may come again, and whichever value a reader takes satisfies the schema", () => {
    assert.isTrue(
      matcher({ type: "object", additionalProperties: { type: "integer" } }, { whitespace: "compact" }).matches("{\"x\":1,\"x\":2}")
    )
    const next = random(41)
    let again = 0
    for (const schema of open) {
      const listed = new Set(["\"a\"", "\"ab\""].filter((name) => JSON.stringify(schema).includes(`"properties":{${name}:`)))
      for (const options of ways) {
        const walk = new GrammarWalk(Result.getOrThrow(compile(schema, options)), next)
        for (let round = 0; round < 300; round++) {
          const text = walk.text()
          const names = namesOf(text)
          assert.isTrue(valid(schema, JSON.parse(text)), `${JSON.stringify(schema)} has no ${text}`)
          if (new Set(names).size === names.length) continue
          again++
          for (const name of listed) assert.isAtMost(names.filter((other) => other === name).length, 1, text)
          if (!/[{[].*[{[]/s.test(text)) assert.isTrue(valid(schema, firstOnly(text)), `${JSON.stringify(schema)} has no first of ${text}`)
        }
      }
    }
    assert.isAbove(again, 20)
  })

  it("with half a surrogate pair are refused, since no text has them", () => {
    const result = compile({ type: "object", properties: { "\ud800": true } })
    if (Result.isSuccess(result)) return assert.fail("it compiled")
    assert.deepStrictEqual([result.failure.reason, result.failure.path], ["Unsupported", "properties.\ud800"])
  })
})
