import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answerOf, errorOf, harness, tokensOf, user } from "./harness.ts"

const call = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>"

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false }
const chatTool = { type: "function", function: { name: "get_weather", parameters } }
const messagesTool = { name: "get_weather", input_schema: parameters }
const responsesTool = { type: "function", name: "get_weather", parameters }

const says = (text: string) => ({ answer: () => ({ tokens: tokensOf(text) }) })

const post = (url: string, path: string, body: object) =>
  Effect.promise(() => fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }))

const messages = user("weather?")

/** Ways to force or limit calls, and one to leave them free. */
const forced: ReadonlyArray<readonly [path: string, body: object]> = [
  ["/v1/chat/completions", { messages, tools: [chatTool] }],
  ["/v1/chat/completions", { messages, tools: [chatTool], tool_choice: "required" }],
  ["/v1/chat/completions", { messages, tools: [chatTool], tool_choice: { type: "function", function: { name: "get_weather" } } }],
  ["/v1/chat/completions", { messages, tools: [{ ...chatTool, function: { ...chatTool.function, strict: true } }] }],
  ["/v1/messages", { max_tokens: 500, messages, tools: [messagesTool] }],
  ["/v1/messages", { max_tokens: 500, messages, tools: [messagesTool], tool_choice: { type: "any" } }],
  ["/v1/messages", { max_tokens: 500, messages, tools: [messagesTool], tool_choice: { type: "tool", name: "get_weather" } }],
  ["/v1/messages", { max_tokens: 500, messages, tools: [{ ...messagesTool, strict: true }] }],
  ["/v1/responses", { input: "weather?", tools: [responsesTool] }],
  ["/v1/responses", { input: "weather?", tools: [responsesTool], tool_choice: "required" }],
  ["/v1/responses", { input: "weather?", tools: [responsesTool], tool_choice: { type: "function", name: "get_weather" } }],
  ["/v1/responses", { input: "weather?", tools: [{ ...responsesTool, strict: true }] }]
]

describe("calls", () => {
  it.live("are held to a grammar in every dialect, streamed and whole", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says(call) })
      for (const [path, body] of forced) {
        for (const stream of [false, true]) {
          const response = yield* post(server.url, path, { ...body, stream })
          const text = yield* Effect.promise(() => response.text())
          assert.include(text, "get_weather", `${path} ${text}`)
          const { grammar } = server.engine.requests.at(-1) ?? {}
          assert.strictEqual(Buffer.from(grammar ?? []).toString("latin1", 0, 4), "MBG1", JSON.stringify(body))
        }
      }
      const before = server.engine.requests.length
      for (const body of [{ messages }, { messages, tools: [chatTool], tool_choice: "none" }]) {
        yield* Effect.promise(() => answerOf(server.post(body)))
      }
      for (const request of server.engine.requests.slice(before)) assert.isUndefined(request.grammar)
    }))

  it.live("that nobody was promised go unheld where holding them costs the engine too much; promised ones are refused", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: ({ grammar }) =>
            grammar === undefined
              ? { tokens: tokensOf(call) }
              : { tokens: [], fault: { _tag: "Failed", afterTokens: 0, code: "too_complex", message: "the grammar needs too many states" } }
        }
      })
      const free = yield* Effect.promise(() => answerOf(server.post({ messages, tools: [chatTool] })))
      assert.strictEqual(free.choices[0]?.message.tool_calls?.[0]?.function.name, "get_weather")
      const refused = yield* Effect.promise(() => server.post({ messages, tools: [chatTool], tool_choice: "required" }))
      assert.strictEqual(refused.status, 400)
      assert.include((yield* Effect.promise(() => errorOf(refused))).message, "too many states")
    }))

  it.live("of custom tools are held to the grammar of the input", () =>
    Effect.gen(function*() {
      const output = "<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"*** Begin\\nx\"}}\n</tool_call>"
      const server = yield* harness({ script: says(output) })
      const format = { type: "grammar", syntax: "lark", definition: "start: \"*** Begin\" \"\\n\" /[a-z]+/" }
      const response = yield* post(server.url, "/v1/responses", { input: "go", tools: [{ type: "custom", name: "patch", format }] })
      assert.isNull(response.headers.get("x-mashbox-ignored"))
      const answer = JSON.parse(yield* Effect.promise(() => response.text()))
      assert.deepInclude(answer.output.at(-1), { type: "custom_tool_call", name: "patch", input: "*** Begin\nx" })
      assert.isDefined(server.engine.requests[0]?.grammar)
      const bad = { ...format, definition: "start: nowhere" }
      const refused = yield* post(server.url, "/v1/responses", { input: "go", tools: [{ type: "custom", name: "patch", format: bad }] })
      assert.strictEqual(refused.status, 400)
      assert.match(yield* Effect.promise(() => refused.text()), /"param":"tools\.0\.format\.definition"/)
    }))
})
