import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { OutputFormat } from "../../../src/domain/OutputFormat.ts"
import { GrammarBuilder } from "../../../src/grammar/GrammarBuilder.ts"
import { attempt } from "../../../src/grammar/GrammarError.ts"
import { formatNode } from "../../../src/grammar/OutputGrammar.ts"
import { GrammarMatcher } from "../../support/GrammarMatcher.ts"

const compile = (format: OutputFormat) =>
  attempt(() => {
    const builder = new GrammarBuilder()
    return builder.finish(formatNode(builder, format), "format")
  })

const field = "f"
const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false }

const tags: OutputFormat = {
  _tag: "Tags",
  triggers: ["<f="],
  tags: [
    { begin: "<f=one>", schema, end: "</f>", field: "f.structures.0.schema" },
    { begin: "<f=two>", schema: { enum: [1, 2] }, end: "</f>", field: "f.structures.1.schema" }
  ],
  field
}

const cases: ReadonlyArray<readonly [format: OutputFormat, accepted: ReadonlyArray<string>, refused: ReadonlyArray<string>]> = [
  [{ _tag: "JsonObject", field }, ["{}", "{\"a\": [1, null]}"], ["[]", "1", "{"]],
  [{ _tag: "JsonSchema", schema, field }, ["{\"a\": 1}"], ["{}", "{\"a\": 1} "]],
  [{ _tag: "Regex", pattern: "a+|^b$", field }, ["aa", "b"], ["", "ab", "xa"]],
  [{ _tag: "Choice", choices: ["yes", "no", "yes", "é\n"], field }, ["yes", "no", "é\n"], ["", "y", "yesno"]],
  [{ _tag: "Grammar", syntax: "gbnf", text: "root ::= \"a\" | \"b\" root", field }, ["a", "bba"], ["b"]],
  [{ _tag: "Grammar", syntax: "lark", text: "start: \"a\" [\"b\"]", field }, ["a", "ab"], ["b"]],
  [tags, [
    "",
    "just text < f",
    "before <f=one>{\"a\": 1}</f> between <f=two>2</f> after",
    "<f=two>1</f>"
  ], ["<f=three>1</f>", "<f=one>{}</f>", "text <f=two>3</f>", "<f=two>1"]]
]

const errors: ReadonlyArray<readonly [format: OutputFormat, reason: string, path: string]> = [
  [{ _tag: "JsonSchema", schema: { properties: { a: { type: "x" } } }, field }, "Invalid", "f.properties.a.type"],
  [{ _tag: "JsonSchema", schema: 5, field }, "Invalid", "f"],
  [{ _tag: "Regex", pattern: "a\\b", field }, "Unsupported", "f"],
  [{ _tag: "Choice", choices: [], field }, "Invalid", "f"],
  [{ _tag: "Grammar", syntax: "gbnf", text: "root ::= x", field }, "Invalid", "f"],
  [{ _tag: "Grammar", syntax: "lark", text: "a: b", field }, "Invalid", "f"],
  [{ ...tags, triggers: [] }, "Invalid", "f.triggers"],
  [{ ...tags, triggers: ["<x"] }, "Invalid", "f.triggers"],
  [{ ...tags, triggers: ["<f=one"] }, "Invalid", "f.structures.1.begin"],
  [
    { ...tags, tags: [{ begin: "<f=a>", schema: { type: 1 }, end: "", field: "f.structures.0.schema" }] },
    "Invalid",
    "f.structures.0.schema.type"
  ]
]

describe("formats of an answer", () => {
  for (const [format, accepted, refused] of cases) {
    it(`${format._tag} ${JSON.stringify(format).slice(0, 60)}`, () => {
      const matcher = new GrammarMatcher(Result.getOrThrow(compile(format)))
      for (const text of accepted) assert.isTrue(matcher.matches(text), text)
      for (const text of refused) assert.isFalse(matcher.matches(text), text)
    })
  }

  for (const [format, reason, path] of errors) {
    it(`${reason} at ${path}: ${JSON.stringify(format).slice(0, 80)}`, () => {
      const result = compile(format)
      if (Result.isSuccess(result)) return assert.fail("it compiled")
      assert.deepStrictEqual([result.failure.reason, result.failure.path], [reason, path], result.failure.message)
      assert.isTrue(result.failure.message.startsWith(`${path}: `), result.failure.message)
    })
  }
})
