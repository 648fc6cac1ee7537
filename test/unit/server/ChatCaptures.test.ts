import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { checkChatStream } from "../../support/ChatStreamChecker.ts"
import { answerOf, errorOf, harness, textOf, tokensOf, user } from "./harness.ts"

const folder = resolve(import.meta.dirname, "../../fixtures/captures")

const Capture = Schema.fromJsonString(
  Schema.Struct({
    scenario: Schema.String,
    request: Schema.Struct({
      path: Schema.String,
      headers: Schema.Record(Schema.String, Schema.String),
      body: Schema.Struct({
        stream: Schema.optionalKey(Schema.Boolean),
        n: Schema.optionalKey(Schema.Int),
        stream_options: Schema.optionalKey(Schema.Struct({ include_usage: Schema.optionalKey(Schema.Boolean) })),
        tools: Schema.optionalKey(Schema.Array(Schema.Unknown))
      })
    })
  })
)

const clients = ["opencode", "pi", "qwen-code", "sdk-openai", "sdk-vercel-ai"]

const captures = clients.flatMap((client) =>
  readdirSync(join(folder, client)).filter((file) => file.endsWith("-chat.json")).map((file) => {
    const text = readFileSync(join(folder, client, file), "utf8")
    const whole: { readonly request: { readonly body: object } } = JSON.parse(text)
    return { name: `${client}/${file}`, ...Schema.decodeSync(Capture)(text), whole: whole.request.body }
  })
)

/** Requests for what needs eyes, and the field that is to blame. Every other one is a 200. */
const refused: Readonly<Record<string, string>> = {
  "opencode/16-chat.json": "messages.1.content.2",
  "pi/11-chat.json": "messages.1.content.1"
}

const Bounds = Schema.Struct({
  max_completion_tokens: Schema.optionalKey(Schema.Finite),
  max_tokens: Schema.optionalKey(Schema.Finite)
})

const output = "I will run a command.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"echo hi\"}}\n</tool_call>"

const forwarded = ["user-agent", "x-session-id", "x-session-affinity", "session-id", "x-client-request-id"]

describe("requests that real clients sent", () => {
  it("cover every client", () => assert.strictEqual(captures.length, 55))

  for (const { name, request, scenario, whole } of captures) {
    it.live(`${name}: ${scenario}`, () =>
      Effect.gen(function*() {
        const server = yield* harness({
          script: { answer: ({ tokens }) => ({ tokens: tokensOf(textOf(tokens).endsWith("<think>") ? `hm</think>${output}` : output) }) }
        })
        const headers = Object.fromEntries(
          forwarded.flatMap((key) => request.headers[key] === undefined ? [] : [[key, request.headers[key]]])
        )
        const response = yield* Effect.promise(() => server.post({ ...whole, model: "demo/model" }, { headers }))
        const field = refused[name]
        if (field !== undefined) {
          assert.strictEqual(response.status, 400)
          assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, field)
          return
        }
        assert.strictEqual(response.status, 200)
        // Some allow fewer tokens than the scripted call has.
        const { max_completion_tokens, max_tokens } = yield* Schema.decodeEffect(Bounds)(whole)
        const withTools = (request.body.tools ?? []).length > 0 && (max_completion_tokens ?? max_tokens ?? output.length) >= output.length
        if (request.body.stream === true) {
          const includeUsage = request.body.stream_options?.include_usage ?? false
          const { choices } = checkChatStream(yield* Effect.promise(() => response.text()), { includeUsage })
          assert.strictEqual(choices[0]?.toolCalls.length, withTools ? 1 : 0)
        } else {
          const { choices } = yield* Effect.promise(() => answerOf(Promise.resolve(response)))
          assert.strictEqual(choices[0]?.message.tool_calls?.length ?? 0, withTools ? 1 : 0)
        }
      }))
  }
})

const Recorded = Schema.fromJsonString(Schema.Struct({
  choices: Schema.Array(Schema.Struct({
    delta: Schema.Record(Schema.String, Schema.Unknown),
    finish_reason: Schema.NullOr(Schema.String)
  })),
  usage: Schema.optionalKey(Schema.Unknown)
}))

/** What a stream says in which order, repeated deltas once. */
const grammarOf = (body: string): ReadonlyArray<string> => {
  const kinds = body.trim().split("\n\n").map((frame) => {
    if (frame === "data: [DONE]") return "done"
    const { choices: [choice], usage } = Schema.decodeSync(Recorded)(frame.slice("data: ".length))
    if (choice === undefined) return usage === undefined ? "nothing" : "usage"
    if (choice.finish_reason !== null) return choice.finish_reason
    const [key] = Object.keys(choice.delta)
    const isCall = key === "tool_calls" && JSON.stringify(choice.delta).includes("\"name\":")
    return isCall ? "call" : key ?? "empty"
  })
  return kinds.filter((kind, index) => kind !== kinds[index - 1])
}

describe("streams that every client accepts", () => {
  const scripts: Readonly<Record<string, string>> = {
    text: "Hello there.",
    tool: output,
    thinking_tool: `let me think\n</think>\n\n${output}`
  }
  for (const [kind, text] of Object.entries(scripts)) {
    it.live(`have the events of ${kind}`, () =>
      Effect.gen(function*() {
        const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf(text) }) } })
        const tools = kind === "text" ? [] : [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }]
        const stream = yield* Effect.promise(async () =>
          (await server.post({
            messages: user("hi"),
            tools,
            enable_thinking: kind === "thinking_tool",
            stream: true,
            stream_options: { include_usage: true }
          })).text()
        )
        checkChatStream(stream, { includeUsage: true })
        assert.deepStrictEqual(
          grammarOf(stream),
          grammarOf(readFileSync(join(folder, "golden-responses", `chat-${kind}.sse`), "utf8"))
        )
      }))
  }
})
