import Anthropic, { APIError, APIUserAbortError, AuthenticationError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk"
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as z from "zod"
import { type Harness, harness, type HarnessOptions, textOf, tokensOf } from "../../unit/server/harness.ts"

const clientOf = (server: Harness, maxRetries = 0) => new Anthropic({ baseURL: server.url, apiKey: "unused", maxRetries })

const says = (...texts: ReadonlyArray<string>): HarnessOptions => ({
  script: { answer: (_request, index) => ({ tokens: tokensOf(texts[index] ?? "") }) }
})

/** The official client against a server that says one text after the other. */
const using = (options: HarnessOptions, use: (client: Anthropic, server: Harness) => Promise<void>) =>
  Effect.gen(function*() {
    const server = yield* harness(options)
    yield* Effect.promise(() => use(clientOf(server), server))
  })

const base = { model: "demo/model", max_tokens: 500 }
const hi: Array<Anthropic.MessageParam> = [{ role: "user", content: "hi" }]

const callOf = (city: string) =>
  `I look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": ${JSON.stringify(city)}}}\n</tool_call>`

const weather: Anthropic.Tool = {
  name: "get_weather",
  description: "Weather of a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

const textIn = (message: { readonly content: ReadonlyArray<{ readonly type: string; readonly text?: string }> }) =>
  message.content.map((block) => block.type === "text" ? block.text : "").join("")

/** What a rejected promise was rejected with. */
const rejection = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(() => assert.fail("it did not fail"), (error: unknown) => error)

describe("the official @anthropic-ai/sdk package", () => {
  it.live("messages.create", () =>
    using(says("Hello!"), async (client) => {
      const message = await client.messages.create({ ...base, messages: hi, system: "be brief" })
      assert.strictEqual(textIn(message), "Hello!")
      assert.strictEqual(message.stop_reason, "end_turn")
      assert.strictEqual(message.usage.output_tokens, 6)
      assert.match(message._request_id ?? "", /^req_/)
    }))

  it.live("a raw stream", () =>
    using(says("Hello!"), async (client) => {
      let text = ""
      let last = ""
      for await (const event of await client.messages.create({ ...base, messages: hi, stream: true })) {
        if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text
        last = event.type
      }
      assert.deepStrictEqual([text, last], ["Hello!", "message_stop"])
    }))

  it.live("messages.stream with thinking, text and a call", () =>
    using(says(`let me see</think>${callOf("Paris")}`), async (client) => {
      const seen: Record<string, string> = { text: "", thinking: "", json: "", signature: "" }
      const stream = client.messages.stream({
        ...base,
        messages: hi,
        tools: [weather],
        thinking: { type: "enabled", budget_tokens: 1024 }
      })
      stream.on("text", (delta) => seen["text"] += delta)
      stream.on("thinking", (delta) => seen["thinking"] += delta)
      stream.on("inputJson", (delta) => seen["json"] += delta)
      stream.on("signature", (signature) => seen["signature"] += signature)
      const message = await stream.finalMessage()
      assert.deepStrictEqual(seen, { text: "I look.", thinking: "let me see", json: "{\"city\": \"Paris\"}", signature: "mashbox-local" })
      assert.deepStrictEqual(message.content.map((block) => block.type), ["thinking", "text", "tool_use"])
      assert.strictEqual(message.stop_reason, "tool_use")
      assert.strictEqual(message.usage.input_tokens, "user:hi|<think>".length)
    }))

  it.live("a tool loop by hand", () =>
    using(says(callOf("Rom"), "Sunny."), async (client, server) => {
      const first = await client.messages.create({ ...base, messages: hi, tools: [weather] })
      const call = first.content.find((block) => block.type === "tool_use")
      assert(call !== undefined)
      assert.deepStrictEqual(call.input, { city: "Rom" })
      const second = await client.messages.create({
        ...base,
        tools: [weather],
        messages: [
          ...hi,
          { role: "assistant", content: first.content },
          { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }] }
        ]
      })
      assert.strictEqual(textIn(second), "Sunny.")
      assert.strictEqual(textOf(server.engine.requests[1]!.tokens), "user:hi|assistant:I look.|tool:sunny|")
    }))

  for (const stream of [false, true]) {
    it.live(`beta.messages.toolRunner, ${stream ? "streamed" : "whole"}, goes on without threads`, () =>
      using(says(callOf("Rom"), callOf("Oslo"), "Warm and cold."), async (client, server) => {
        const cities: Array<string> = []
        const tool = betaZodTool({
          name: "get_weather",
          description: "Weather of a city",
          inputSchema: z.object({ city: z.string() }),
          run: ({ city }) => {
            cities.push(city)
            return `weather of ${city}`
          }
        })
        const runner = client.beta.messages.toolRunner({ ...base, messages: [{ role: "user", content: "hi" }], tools: [tool], stream })
        const final = await runner.runUntilDone()
        assert.strictEqual(textIn(final), "Warm and cold.")
        assert.deepStrictEqual(cities, ["Rom", "Oslo"])
        assert.strictEqual(
          textOf(server.engine.requests[2]!.tokens),
          "user:hi|assistant:I look.|tool:weather of Rom|assistant:I look.|tool:weather of Oslo|"
        )
      }))
  }

  it.live("messages.countTokens, plain and beta", () =>
    using(says(), async (client) => {
      const body = { model: "any", messages: hi, system: "x", tools: [weather] }
      assert.deepStrictEqual(await client.messages.countTokens(body), { input_tokens: "system:x|user:hi|".length })
      assert.deepStrictEqual({ ...await client.beta.messages.countTokens({ ...body, betas: ["token-counting-2024-11-01"] }) }, {
        input_tokens: "system:x|user:hi|".length
      })
    }))

  it.live("models", () =>
    using(says(), async (client) => {
      const page = await client.models.list({ limit: 1000 })
      assert.deepStrictEqual(page.data.map(({ id, type }) => [id, type]), [["demo/model", "model"]])
      assert.strictEqual((await client.models.retrieve("demo/model")).display_name, "demo/model")
      assert.instanceOf(await rejection(client.models.retrieve("other")), NotFoundError)
    }))

  it.live("errors arrive as the SDK's own classes", () =>
    Effect.gen(function*() {
      const server = yield* harness({ ...says("ok"), settings: { apiKey: "sk-right" } })
      const keyed = new Anthropic({ baseURL: server.url, apiKey: "sk-right", maxRetries: 0 })
      yield* Effect.promise(async () => {
        const wrong = await rejection(clientOf(server).messages.create({ ...base, messages: hi }))
        assert.instanceOf(wrong, AuthenticationError)
        const bad = await rejection(keyed.messages.create({ ...base, messages: hi, tool_choice: { type: "any" } }))
        assert(bad instanceof BadRequestError)
        assert.strictEqual(bad.type, "invalid_request_error")
        assert.match(bad.requestID ?? "", /^req_/)
        assert.include(bad.message, "tool_choice: ")
        const batches = await rejection(keyed.messages.batches.create({ requests: [] }))
        assert.instanceOf(batches, NotFoundError)
        assert.strictEqual(textIn(await keyed.messages.create({ ...base, messages: hi })), "ok")
      })
    }))

  it.live("a stream that breaks throws what the server says", () =>
    using({
      script: {
        answer: () => ({
          tokens: tokensOf("abc"),
          interval: 5,
          fault: { _tag: "Failed", afterTokens: 2, code: "out_of_memory", message: "" }
        })
      }
    }, async (client) => {
      const error = await rejection(client.messages.stream({ ...base, messages: hi }).finalMessage())
      assert(error instanceof APIError)
      assert.include(error.message, "Server error: the engine ran out of memory.")
    }))

  it.live("retries what failed, and waits while the model loads", () =>
    Effect.gen(function*() {
      const failing = yield* harness({
        script: {
          answer: (_request, index) =>
            index === 0
              ? { tokens: [], fault: { _tag: "Failed", afterTokens: 0, code: "out_of_memory", message: "" } }
              : { tokens: tokensOf("second try") }
        }
      })
      const loading = yield* harness({ script: { answer: () => ({ tokens: tokensOf("loaded") }), load: { readyAfter: 500 } } })
      yield* Effect.promise(async () => {
        assert.strictEqual(textIn(await clientOf(failing, 2).messages.create({ ...base, messages: hi })), "second try")
        assert.strictEqual(textIn(await clientOf(loading, 2).messages.create({ ...base, messages: hi })), "loaded")
      })
    }))

  it.live("aborting frees the slot", () =>
    using({
      script: {
        answer: () => ({
          tokens: (function*() {
            while (true) yield "x".charCodeAt(0)
          })()
        })
      }
    }, async (client, server) => {
      const stream = client.messages.stream({ ...base, max_tokens: 1_000_000, messages: hi })
      stream.on("text", () => stream.abort())
      assert.instanceOf(await rejection(stream.finalMessage()), APIUserAbortError)
      while (server.engine.running() > 0) await new Promise((resolve) => setImmediate(resolve))
      assert.strictEqual(server.engine.cancelled.length, 1)
    }))
})
