import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { AnthropicError } from "../../../schema/anthropic/Error.ts"
import { Message, TokenCount } from "../../../schema/anthropic/Message.ts"
import { checkMessagesStream } from "../../support/MessagesStreamChecker.ts"
import { harness, textOf, tokensOf } from "./harness.ts"

const folder = resolve(import.meta.dirname, "../../fixtures/captures")

const Capture = Schema.fromJsonString(
  Schema.Struct({
    request: Schema.Struct({
      method: Schema.String,
      path: Schema.String,
      query: Schema.String,
      headers: Schema.Record(Schema.String, Schema.String),
      body: Schema.optionalKey(Schema.Unknown)
    })
  })
)

const clients = ["claude-code", "opencode", "pi", "qwen-code", "sdk-anthropic", "sdk-vercel-ai"]

const captures = clients.flatMap((client) =>
  readdirSync(join(folder, client)).filter((file) => file !== "index.json").map((file) => ({
    name: `${client}/${file}`,
    request: Schema.decodeSync(Capture)(readFileSync(join(folder, client, file), "utf8")).request
  }))
).filter(({ request }) => request.path.startsWith("/v1/messages") || request.path === "/api/hello")

/** Requests for what needs threads, batches or eyes: the status and what the message begins with. Every other one is a 200. */
const refused: Readonly<Record<string, readonly [status: number, message: string]>> = {
  "opencode/18-messages.json": [400, "messages.0.content.2: the model reads only text, not a block of type image"],
  "pi/13-messages.json": [400, "messages.0.content.1: the model reads only text, not a block of type image"],
  "sdk-anthropic/01-v1_messages_batches.json": [404, "This server has no such route"],
  "sdk-anthropic/14-messages.json": [400, "thread: "],
  "sdk-anthropic/15-messages.json": [400, "thread: "],
  "sdk-anthropic/16-messages.json": [400, "thread: "],
  "sdk-anthropic/17-messages.json": [400, "thread: "],
  "sdk-anthropic/18-messages.json": [400, "thread: "],
  "sdk-anthropic/21-messages.json": [400, "thread: "],
  "sdk-anthropic/22-messages.json": [400, "thread: "],
  "sdk-anthropic/23-messages.json": [400, "thread: "]
}

const readError = Schema.decodeUnknownSync(AnthropicError)
const readMessage = Schema.decodeUnknownSync(Message)
const readCount = Schema.decodeUnknownSync(TokenCount)

const hasStream = Schema.is(Schema.Struct({ stream: Schema.Literal(true) }))

/** Headers that are the connection's, not the client's. */
const connectionHeaders = new Set(["host", "connection", "content-length", "accept-encoding", "transfer-encoding"])

/** Closes the block that a prompt for thinking leaves open. */
const afterThinking = (prompt: Iterable<number>, output: string) => textOf(prompt).endsWith("<think>") ? `</think>${output}` : output

const golden = (name: string) => readFileSync(join(folder, "golden-responses", name), "utf8")

/** Reads a stream of another server, whose usage may lack fields that ours always has. */
const goldenGrammar = (name: string): ReadonlyArray<string> =>
  golden(name).split("\n\n").flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1]
    if (data === undefined) return []
    const event: { type: string; content_block?: { type: string }; delta?: { type?: string } } = JSON.parse(data)
    if (event.type === "ping") return []
    return [
      event.type === "content_block_start"
        ? `start ${event.content_block?.type}`
        : event.type === "content_block_delta"
        ? event.delta?.type ?? ""
        : event.type
    ]
  }).filter((name, index, all) => name !== all[index - 1])

describe("requests that real clients sent", () => {
  it("are all here", () => {
    assert.strictEqual(captures.length, 75)
    for (const name of Object.keys(refused)) assert.isTrue(captures.some((capture) => capture.name === name), name)
  })

  for (const { name, request } of captures) {
    it.live(name, () =>
      Effect.gen(function*() {
        const server = yield* harness({
          script: { answer: ({ tokens }) => ({ tokens: tokensOf(afterThinking(tokens, "Hello from mashbox.")) }) },
          limits: { bodyBytes: 1 << 20 }
        })
        const response = yield* Effect.promise(() =>
          fetch(server.url + request.path + request.query, {
            method: request.method,
            headers: Object.entries(request.headers).filter(([header]) => !connectionHeaders.has(header.toLowerCase())),
            ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) })
          })
        )
        const text = yield* Effect.promise(() => response.text())
        const expected = refused[name]
        if (expected !== undefined) {
          const { error } = readError(JSON.parse(text))
          assert.strictEqual(response.status, expected[0], text)
          assert(error.message.startsWith(expected[1]), error.message)
          return
        }
        assert.strictEqual(response.status, 200, text)
        if (request.method === "HEAD") return
        if (request.path.endsWith("count_tokens")) assert.isAbove(readCount(JSON.parse(text)).input_tokens, 0)
        else if (hasStream(request.body)) {
          const { content, grammar } = checkMessagesStream(text)
          assert.deepStrictEqual(grammar, goldenGrammar("messages-text.sse"))
          assert.deepStrictEqual(content, [{ type: "text", text: "Hello from mashbox." }])
        } else assert.deepStrictEqual(readMessage(JSON.parse(text)).content, [{ type: "text", text: "Hello from mashbox." }])
        assert.deepStrictEqual([...response.headers].filter(([header]) => header === "request-id").length, 1)
      }))
  }
})

describe("answers that every client accepts", () => {
  const tools = [{ name: "bash", input_schema: { type: "object", properties: { command: { type: "string" } } } }]
  const call = "I will run a command.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"echo hi\"}}\n</tool_call>"
  const scripts = {
    text: { output: "Hello from mashbox.", fields: {} },
    tool: { output: call, fields: { tools } },
    thinking_tool: { output: `let me think about it</think>${call}`, fields: { tools, thinking: { type: "enabled" } } }
  }
  for (const [name, { fields, output }] of Object.entries(scripts)) {
    it.live(`messages-${name} has the grammar and the content of ours`, () =>
      Effect.gen(function*() {
        const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf(output) }) } })
        const body = { max_tokens: 500, messages: [{ role: "user", content: "go" }], ...fields }
        const post = (stream: boolean) =>
          Effect.promise(async () =>
            (await fetch(`${server.url}/v1/messages`, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: JSON.stringify({ ...body, stream })
            })).text()
          )
        const streamed = checkMessagesStream(yield* post(true))
        assert.deepStrictEqual(streamed.grammar, goldenGrammar(`messages-${name}.sse`))
        const expected: typeof Message.Encoded = JSON.parse(golden(`messages-${name}.json`))
        const ours: typeof Message.Encoded = JSON.parse(yield* post(false))
        const plain = (content: typeof Message.Encoded["content"]) =>
          content.map((block) =>
            block.type === "tool_use" ? { ...block, id: "" } : block.type === "thinking" ? { ...block, signature: "" } : block
          )
        assert.deepStrictEqual(plain(ours.content), plain(expected.content))
        assert.deepStrictEqual(plain(streamed.content), plain(expected.content))
        assert.strictEqual(ours.stop_reason, expected.stop_reason)
        assert.strictEqual(streamed.stopReason, expected.stop_reason)
      }))
  }
})
