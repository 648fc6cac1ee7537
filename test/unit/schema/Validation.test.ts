import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { generate, mutate } from "../../support/JsonGenerator.ts"
import { holds, type Node } from "../../support/JsonSchema.ts"
import type { Document } from "../../support/OpenApiFacts.ts"
import { random } from "../../support/Random.ts"
import { SocketClient } from "../../support/SocketClient.ts"
import { harness, tokensOf } from "../server/harness.ts"

const document: Document = JSON.parse(readFileSync(new URL("../../../schema/openapi.json", import.meta.url), "utf8"))
const { schemas } = document.components

const routes = Object.entries(document.paths).flatMap(([path, operations]) => {
  const schema = operations["post"]?.requestBody?.content?.["application/json"]?.schema
  return schema === undefined ? [] : [[path, schema] as const]
})

/** What is refused though the schema allows it: beginnings of messages, and the rule. Every one is met in this test. */
const rules: ReadonlyArray<readonly [rule: string, message: RegExp]> = [
  ["what is not supported yet is refused by its name, never left out", /^[\w.]+: [\w' ()-]+ (is|are) not supported( by this version)?$/],
  ["a message of a kind that needs content has it", /^messages\.\d+\.content: Missing key$/],
  ["a part or block of a kind has what that kind is made of", /^(messages\.\d+\.content|system|input\.\d+\.\w+)\.\d+\.\w+: Missing key$/],
  [
    "a tool result's content is text or blocks, a call's input an object",
    /^messages\.\d+\.content\.\d+\.(content: Expected a string or a list of content blocks|input: Expected an object)$/
  ],
  ["the model reads only text", /^(messages\.\d+\.content|system|input\.\d+\.\w+)\.\d+: .*the model reads only text/],
  ["one of three fields is the text to tokenize", /^prompt: Expected one of prompt, content and messages$/],
  ["a prompt has at least one token", /^(prompt: the (list|prompt) is empty|input: Expected at least one item)$/],
  ["keys of logit_bias are decimal numbers", /^logit_bias: keys must be token ids, written as decimal numbers$/],
  ["a token is one of the vocabulary", /^[\w.]+: the vocabulary has \d+ tokens$/],
  [
    "tools that the model is shown have a name",
    /^(tools\.\d+(\.function)?|functions\.\d+)\.name: (Missing key|Expected a non-empty string)$/
  ],
  [
    "functions stand alone, and a choice is of them",
    /^(functions: cannot be given together with tools|function_call: there is no function of this name in functions)$/
  ],
  ["a tool's schema is an object", /^tools\.\d+\.input_schema: Expected an object$/],
  ["a tool choice in a word is a known one", /^tool_choice: Expected auto, none, required, or an object that names a function$/],
  [
    "a tool choice is of tools that the request has",
    /^tool_choice(\.[\w.]+)?: (there (are no tools to call|is no tool of this name in tools)|Expected (the name of a tool|auto or required|at least one tool|an object)|the model is shown none of these tools|only functions, custom tools and allowed_tools can be chosen)$/
  ],
  [
    "the form of an output is one that can be enforced, and there is one",
    /^(response_format|text\.format|output_config\.format|output_format|structured_outputs|guided_\w+|grammar|json_schema)(\.[\w.]+)?: /
  ],
  ["top_logprobs goes with logprobs", /^top_logprobs: needs logprobs: true$/],
  ["only an answer that was begun goes on", /^continue_final_message: /],
  ["a template's variables have names and plain values", /^chat_template_kwargs/],
  ["a suffix needs a model and a prompt for it", /^suffix: (this model has no tokens|prompts of token ids have no place)/],
  [
    "choices are limited by the slots and the queue, and by each other",
    /^(n|best_of|prompt): (at most|this server decodes at most|must be at least n|the best of)/
  ]
]

const requests = 400

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** A null at the top counts as absent. */
const withoutNulls = (body: object) => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))

/** A request that was made from the schema, then changed in as many places. */
const requestOf = (schema: Node, next: () => number, mutations: number): object => {
  let body = generate(schemas, schema, next)
  for (let count = 0; count < mutations; count++) body = mutate(body, next)
  assert.isTrue(isObject(body))
  return isObject(body) ? body : {}
}

interface ErrorAnswer {
  readonly error: { readonly message: string; readonly code?: string | null }
}

describe("a request is accepted where openapi.json allows it, and is a 400 where it does not", () => {
  const met = new Set<string>()

  /** Checks one answer; tells what it was. */
  const check = (schema: Node, body: object, status: number, text: string): "accepted" | "refused" | "ruled" => {
    const label = `${status} ${text.slice(0, 300)} for ${JSON.stringify(body)}`
    if (status === 200) {
      assert.isTrue(holds(schemas, schema, withoutNulls(body)), label)
      return "accepted"
    }
    const { error }: ErrorAnswer = JSON.parse(text)
    if (status === 404) {
      assert.include(["model_not_found", "previous_response_not_found"], error.code, label)
      return "accepted"
    }
    assert.strictEqual(status, 400, label)
    if (!holds(schemas, schema, withoutNulls(body))) return "refused"
    const rule = rules.find(([, message]) => message.test(error.message))
    assert.isDefined(rule, label)
    met.add(rule?.[0] ?? "")
    return "ruled"
  }

  for (const [index, [path, schema]] of routes.entries()) {
    it.live(`POST ${path}`, () =>
      Effect.gen(function*() {
        const server = yield* harness({ script: { answer: () => ({ tokens: [...tokensOf("ok"), 3] }) } })
        const next = random(index + 1)
        const counts = { accepted: 0, refused: 0, ruled: 0 }
        for (let request = 0; request < requests; request++) {
          const body = requestOf(schema, next, request % 3)
          const [status, text] = yield* Effect.promise(async () => {
            const response = await fetch(server.url + path, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: JSON.stringify(body)
            })
            return [response.status, await response.text()] as const
          })
          counts[check(schema, body, status, text)]++
        }
        assert.isAtLeast(counts.accepted, 25, JSON.stringify(counts))
        assert.isAtLeast(counts.refused, 50, JSON.stringify(counts))
      }))
  }

  it.live("a message over WebSocket", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: [...tokensOf("ok"), 3] }) }, settings: { websocket: true } })
      const parts = ["ResponseCreate", "ResponsesRequest"].map((name) => ({ $ref: `#/components/schemas/${name}` }))
      const next = random(99)
      const counts = { accepted: 0, refused: 0, ruled: 0 }
      let client = yield* Effect.promise(() => SocketClient.open(server.url))
      for (let request = 0; request < requests; request++) {
        // A connection has 32 names of streams.
        if (request % 30 === 29) {
          yield* Effect.promise(() => client.close())
          client = yield* Effect.promise(() => SocketClient.open(server.url))
        }
        let body: unknown = Object.assign({}, ...parts.map((schema) => requestOf(schema, next, 0)))
        for (let count = 0; count < request % 3; count++) body = mutate(body, next)
        if (!isObject(body)) continue
        client.send(JSON.stringify(body))
        const last = (yield* Effect.promise(() => client.answer())).at(-1)
        const [status, text] = last?.type === "error" && "error" in last
          ? [last.error.code === "previous_response_not_found" ? 404 : last.status, JSON.stringify(last)]
          : [200, ""]
        counts[check({ allOf: parts }, body, status, text)]++
      }
      yield* Effect.promise(() => client.close())
      assert.isAtLeast(counts.accepted, 50, JSON.stringify(counts))
      assert.isAtLeast(counts.refused, 50, JSON.stringify(counts))
    }))

  it("every rule is met", () => assert.deepStrictEqual(rules.map(([rule]) => rule).filter((rule) => !met.has(rule)), []))
})

describe("the validator", () => {
  const cases: ReadonlyArray<readonly [schema: Node, taken: ReadonlyArray<unknown>, refused: ReadonlyArray<unknown>]> = [
    [{ type: "integer", minimum: 1, maximum: 5 }, [1, 5], [0, 6, 1.5, "1", null, true]],
    [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 }, [0.5], [0, 1, "0.5"]],
    [{ type: "string", minLength: 1, maxLength: 2, pattern: "^a" }, ["a", "ab"], ["", "b", "abc", 1]],
    [{ type: "array", items: { type: "boolean" }, minItems: 1, maxItems: 2 }, [[true]], [[], [1], [true, true, true], {}]],
    [{ type: "object", properties: { a: { type: "null" } }, required: ["a"] }, [{ a: null, b: 1 }], [{}, { a: 1 }, [], null]],
    [{ type: "object", additionalProperties: { type: "number" } }, [{}, { a: 1 }], [{ a: "1" }]],
    [{ anyOf: [{ enum: ["a"] }, { const: 1 }], allOf: [{ description: "x" }] }, ["a", 1], ["b", 2, null]],
    [{ oneOf: [{ type: "number" }, { type: "integer" }] }, [0.5], [1, "a"]],
    [{ type: ["string", "null"] }, ["", null], [0]],
    [{}, [null, 1, "a", [], {}], []]
  ]

  it("knows every keyword that the document uses", () => {
    for (const [schema, taken, refused] of cases) {
      for (const value of taken) assert.isTrue(holds({}, schema, value), JSON.stringify([schema, value]))
      for (const value of refused) assert.isFalse(holds({}, schema, value), JSON.stringify([schema, value]))
    }
    assert.isFalse(holds({ A: { type: "string" } }, { $ref: "#/components/schemas/A" }, 1))
    const strange: Node = JSON.parse("{\"multipleOf\": 2}")
    assert.throws(() => holds({}, strange, 2), "unknown keyword multipleOf")
  })
})
