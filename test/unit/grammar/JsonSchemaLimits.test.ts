import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { compile } from "../../../src/grammar/JsonSchema.ts"

const nested = (levels: number, around: (inner: unknown) => unknown): unknown => {
  let schema: unknown = { type: "string" }
  for (let level = 0; level < levels; level++) schema = around(schema)
  return schema
}

const numbered = <A>(count: number, made: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, index) => made(index))

/** What a schema made to hurt gives: a grammar, or an error of these reasons. */
const hostile: ReadonlyArray<readonly [name: string, make: () => unknown, outcomes: ReadonlyArray<string>]> = [
  ["a pattern with nested quantifiers", () => ({ type: "string", pattern: "^(a+)+$" }), ["ok"]],
  [
    "a pattern of ambiguous choices with a length",
    () => ({ type: "string", pattern: "^(a|a)*(a|aa)*b$", minLength: 50, maxLength: 2000 }),
    ["ok"]
  ],
  ["counts in counts", () => ({ type: "string", pattern: "^((a{1,1000}){1,1000}){1,1000}$", minLength: 3 }), ["ok"]],
  ["an enum that a bad pattern looks at", () => ({ enum: ["a".repeat(20_000)], pattern: "^(.*a){20}$" }), ["ok", "TooLarge"]],
  ["thousands of lookaheads", () => ({ type: "string", pattern: "(?=a)".repeat(2000) }), ["TooLarge"]],
  ["hundreds of anchors", () => ({ type: "string", pattern: "(^|a|$)".repeat(500) }), ["TooLarge"]],
  ["deep groups", () => ({ type: "string", pattern: "(".repeat(5000) + ")".repeat(5000) }), ["TooLarge"]],
  ["a long pattern", () => ({ type: "string", pattern: "[a-z]+\\d?".repeat(20_000) }), ["TooLarge"]],
  ["depth 1 000", () => nested(1000, (inner) => ({ type: "object", properties: { a: inner } })), ["ok"]],
  ["depth 100 000", () => nested(100_000, (inner) => ({ properties: { a: inner } })), ["TooLarge"]],
  ["arrays of arrays", () => nested(2000, (inner) => ({ type: "array", items: inner })), ["ok", "TooLarge"]],
  ["allOf in allOf", () => nested(1000, (inner) => ({ allOf: [inner] })), ["TooLarge"]],
  ["not in not", () => nested(1000, (inner) => ({ not: inner })), ["TooLarge"]],
  ["10 000 values", () => ({ enum: numbered(10_000, (index) => `value ${index}`) }), ["ok", "TooLarge"]],
  ["10 000 constants", () => ({ oneOf: numbered(10_000, (index) => ({ const: index })) }), ["ok", "TooLarge"]],
  [
    "a product of alternatives",
    () => ({ allOf: numbered(30, (index) => ({ anyOf: [{ required: [`a${index}`] }, { required: [`b${index}`] }] })) }),
    ["TooLarge"]
  ],
  [
    "10 MB of properties",
    () => ({
      properties: Object.fromEntries(numbered(60_000, (index) => [`p${index}`, { type: "object", description: "x".repeat(100) }]))
    }),
    [
      "TooLarge"
    ]
  ],
  ["10 MB of description", () => ({ type: "string", description: "x".repeat(10_000_000) }), ["ok"]],
  ["10 MB of a constant", () => ({ const: "x".repeat(10_000_000) }), ["TooLarge"]],
  ["a loop of references", () => ({ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }), ["Invalid"]],
  ["a chain of references", () => ({
    $ref: "#/$defs/d0",
    $defs: Object.fromEntries(numbered(1000, (index) => [`d${index}`, { $ref: `#/$defs/d${index + 1}` }]))
  }), ["TooLarge"]],
  ["a deep constant", () => ({ const: nested(5000, (inner) => [inner]) }), ["TooLarge"]],
  ["a long pointer", () => ({ $ref: `#${"/a".repeat(100_000)}` }), ["Invalid"]],
  ["patterns that overlap", () => ({
    patternProperties: Object.fromEntries(numbered(5, (index) => [`(a|b)*a(a|b){${index + 8}}$`, { minimum: index }]))
  }), ["ok", "TooLarge"]],
  ["many patterns", () => ({ patternProperties: Object.fromEntries(numbered(20, (index) => [`x${index}`, {}])) }), ["TooLarge"]],
  ["lengths beyond everything", () => ({ type: "string", maxLength: 1e15 }), ["ok"]],
  ["a length that nobody reaches", () => ({ type: "string", minLength: 1e15 }), ["TooLarge"]],
  [
    "keys of the prototype",
    () =>
      JSON.parse(
        "{\"type\":\"object\",\"properties\":{\"__proto__\":{\"type\":\"null\"},\"constructor\":true},\"required\":[\"__proto__\"]}"
      ),
    [
      "ok"
    ]
  ]
]

describe("schemas made to hurt", () => {
  for (const [name, make, outcomes] of hostile) {
    it(name, () => {
      const result = compile(make())
      assert.include(outcomes, Result.isSuccess(result) ? "ok" : result.failure.reason)
      if (Result.isFailure(result)) assert.isBelow(result.failure.message.length, 700)
    })
  }
})
