import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { answerOf, events, harness, tokensOf, user } from "./harness.ts"

const nested = (levels: number, around: (inner: unknown) => unknown): unknown => {
  let schema: unknown = { type: "string" }
  for (let level = 0; level < levels; level++) schema = around(schema)
  return schema
}

const numbered = <A>(count: number, made: (index: number) => A): Array<A> => Array.from({ length: count }, (_, index) => made(index))

/** Values that cannot be enforced, each by a shape that costs much to find out. */
const hostile: Record<string, unknown> = {
  "10 MB": { properties: Object.fromEntries(numbered(60_000, (index) => [`p${index}`, { description: "x".repeat(120) }])) },
  "an enum of 10 000 values that a pattern looks at": { enum: numbered(10_000, (index) => `${"a".repeat(20)}${index}`), pattern: "(" },
  "a pattern of thousands of lookaheads": { type: "string", pattern: "(?=(a+)+)".repeat(2000) },
  "depth 1 000": nested(1000, (inner) => ({ allOf: [inner] })),
  "depth 1 000 by references": {
    $ref: "#/properties/a/$defs/d0",
    $defs: Object.fromEntries(numbered(1000, (index) => [`d${index}`, { $ref: `#/properties/a/$defs/d${index + 1}` }]))
  },
  "a loop of references": { $ref: "#/properties/a" },
  "a product of alternatives": { allOf: numbered(30, (index) => ({ anyOf: [{ required: [`a${index}`] }, { required: [`b${index}`] }] })) }
}

const schemaOf = (value: unknown) => ({ type: "object", properties: { a: value }, required: ["a"], additionalProperties: false })

const messages = user("go")

/** Where each dialect takes a schema that it has to enforce, and the field its errors name. */
const dialects: ReadonlyArray<readonly [path: string, body: (schema: unknown) => object, field: string]> = [
  [
    "/v1/chat/completions",
    (parameters) => ({ messages, tools: [{ type: "function", function: { name: "f", strict: true, parameters } }] }),
    "tools.0.function.parameters"
  ],
  [
    "/v1/chat/completions",
    (schema) => ({ messages, response_format: { type: "json_schema", json_schema: { name: "f", schema } } }),
    "response_format.json_schema.schema"
  ],
  [
    "/v1/completions",
    (schema) => ({ prompt: "go", response_format: { type: "json_schema", json_schema: { name: "f", schema } } }),
    "response_format.json_schema.schema"
  ],
  [
    "/v1/messages",
    (schema) => ({ max_tokens: 9, messages, tools: [{ name: "f", strict: true, input_schema: schema }] }),
    "tools.0.input_schema"
  ],
  [
    "/v1/responses",
    (parameters) => ({ input: "go", tools: [{ type: "function", name: "f", strict: true, parameters }] }),
    "tools.0.parameters"
  ],
  ["/v1/responses", (schema) => ({ input: "go", text: { format: { type: "json_schema", name: "f", schema } } }), "text.format.schema"]
]

describe("schemas made to hurt", () => {
  it.live("are refused by their field in every dialect, while another stream goes on", () =>
    Effect.gen(function*() {
      const words = numbered(300, (index) => `${index} `)
      let refusals = 0
      const asked = { over: false }
      const server = yield* harness({
        script: {
          answer: ({ grammar }, index) => ({
            // Endless until everything was refused, then a known end.
            tokens: index > 0 || grammar !== undefined ? tokensOf("ok") : (function*() {
              for (let at = 0; !asked.over; at++) yield 97 + at % 26
              yield* tokensOf(words.join(""))
            })(),
            ...(index === 0 ? { interval: 1 } : {})
          }),
          model: { contextLength: 10_000_000 }
        },
        served: { contextLength: 10_000_000 },
        limits: { bodyBytes: 32 * 1024 * 1024 }
      })
      const streamed = yield* Effect.forkChild(
        Effect.promise(() => server.post({ messages, stream: true, max_tokens: 1_000_000 }).then((response) => response.text()))
      )
      for (const [name, value] of Object.entries(hostile)) {
        for (const [path, body, field] of dialects) {
          const response = yield* Effect.promise(() =>
            fetch(server.url + path, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: JSON.stringify(body(schemaOf(value)))
            })
          )
          const answer = yield* Effect.promise(() => response.text())
          assert.strictEqual(response.status, 400, `${name} ${path} ${answer.slice(0, 300)}`)
          // So deep a body is refused as a whole, before it is anything's schema.
          assert.include(answer, name === "depth 1 000" ? "nests deeper than" : field, `${name} ${path}`)
          refusals++
        }
      }
      asked.over = true
      const all = events(yield* Fiber.join(streamed))
      assert.strictEqual(refusals, Object.keys(hostile).length * dialects.length)
      assert.strictEqual(all.at(-1), "[DONE]")
      const content = all.flatMap((event) => {
        const text: unknown = typeof event === "object" && event !== null && "choices" in event ? JSON.stringify(event.choices) : undefined
        const match = typeof text === "string" ? /"content":"([^"]*)"/.exec(text) : null
        return match === null ? [] : [match[1]]
      }).join("")
      assert.match(content, /^[a-z]+0 1 2 /)
      const letters = content.slice(0, content.indexOf("0"))
      assert.isTrue(letters === numbered(letters.length, (at) => String.fromCharCode(97 + at % 26)).join(""), "in order")
      assert.strictEqual(content.slice(letters.length), words.join(""))
      assert.strictEqual(server.engine.requests.length, 1)
      const next = yield* Effect.promise(() => answerOf(server.post({ messages })))
      assert.strictEqual(next.choices[0]?.message.content, "ok")
    }), 120_000)

  it.live("are refused by the tool that was too much, where each of them could be enforced alone", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("ok") }) }, limits: { bodyBytes: 32 * 1024 * 1024 } })
      const schema = (at: number) => ({
        type: "object",
        properties: Object.fromEntries(
          numbered(40, (key) => [`p${key}`, { type: "number", minimum: 1.2345678 * (at + 1) * (key + 1), maximum: 1e7 / 3 }])
        )
      })
      const tools = <A>(made: (schema: unknown, name: string) => A) => numbered(300, (at) => made(schema(at), `f${at}`))
      const dialects: ReadonlyArray<readonly [path: string, body: object, field: RegExp]> = [
        ["/v1/chat/completions", {
          messages,
          tools: tools((parameters, name) => ({ type: "function", function: { name, strict: true, parameters } }))
        }, /tools\.\d+\.function\.parameters: too large/],
        [
          "/v1/messages",
          { max_tokens: 9, messages, tools: tools((input_schema, name) => ({ name, strict: true, input_schema })) },
          /tools\.\d+\.input_schema: too large/
        ],
        [
          "/v1/responses",
          { input: "go", tools: tools((parameters, name) => ({ type: "function", name, strict: true, parameters })) },
          /tools\.\d+\.parameters: too large/
        ]
      ]
      for (const [path, body, field] of dialects) {
        const response = yield* Effect.promise(() =>
          fetch(server.url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
        )
        const answer = yield* Effect.promise(() => response.text())
        assert.strictEqual(response.status, 400, answer.slice(0, 300))
        assert.match(answer, field)
      }
      const many = { messages, tools: numbered(10_000, (at) => ({ type: "function", function: { name: `f${at}`, strict: true } })) }
      const response = yield* Effect.promise(() => server.post(many))
      assert.strictEqual(response.status, 400)
      assert.include(yield* Effect.promise(() => response.text()), "tools: more than 2048 tools cannot be enforced")
    }), 120_000)
})
