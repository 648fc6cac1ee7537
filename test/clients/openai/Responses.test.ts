import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI, { BadRequestError, NotFoundError } from "openai"
import { type Harness, harness, type HarnessOptions, textOf } from "../../unit/server/harness.ts"
import { model, says, weather } from "./scripted.ts"

const clientOf = (server: Harness) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0 })

/** The official client against a server that says one text after the other. */
const using = (options: HarnessOptions, use: (client: OpenAI, server: Harness) => Promise<void>) =>
  Effect.gen(function*() {
    const server = yield* harness(options)
    yield* Effect.promise(() => use(clientOf(server), server))
  })

const weatherCall = "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"

describe("the official openai package", () => {
  it.live("responses.create", () =>
    using(says("Hello!"), async (client) => {
      const response = await client.responses.create({ model, input: "hi", instructions: "be brief" })
      assert.strictEqual(response.output_text, "Hello!")
      assert.strictEqual(response.status, "completed")
      assert.strictEqual(response.usage?.output_tokens, 6)
      assert.isString(response._request_id)
    }))

  it.live("raw stream", () =>
    using(says("Hello!"), async (client) => {
      let text = ""
      for await (const event of await client.responses.create({ model, input: "hi", stream: true })) {
        if (event.type === "response.output_text.delta") text += event.delta
      }
      assert.strictEqual(text, "Hello!")
    }))

  it.live("responses.stream: text, reasoning, calls", () =>
    using(says(`hm\nso</think>\n\n${weatherCall}`), async (client) => {
      const seen = new Set<string>()
      const stream = client.responses.stream({
        model,
        input: "weather?",
        tools: [weather],
        reasoning: { effort: "high", summary: "auto" },
        include: ["reasoning.encrypted_content"]
      })
      stream.on("event", (event) => seen.add(event.type))
      const response = await stream.finalResponse()
      assert.deepStrictEqual(response.output.map((item) => item.type), ["reasoning", "message", "function_call"])
      assert.strictEqual(response.output_text, "I look.")
      assert.isTrue(seen.has("response.function_call_arguments.delta"))
      assert.isTrue(seen.has("response.reasoning_summary_text.delta"))
    }))

  it.live("responses.stream: reasoning as content, a custom tool, a namespace", () =>
    using(
      says(
        "hm</think><tool_call>\n{\"name\": \"apply_patch\", \"arguments\": {\"input\": \"*** x\\n\"}}\n</tool_call>\n" +
          "<tool_call>\n{\"name\": \"ns__run\", \"arguments\": {}}\n</tool_call>"
      ),
      async (client) => {
        const response = await client.responses.stream({
          model,
          input: "go",
          reasoning: { effort: "low" },
          tools: [
            { type: "custom", name: "apply_patch" },
            { type: "namespace", name: "ns", description: "n", tools: [{ type: "function", name: "run", strict: false, parameters: {} }] }
          ]
        }).finalResponse()
        const [reasoning, message, custom, namespaced] = response.output
        assert.strictEqual(reasoning?.type === "reasoning" ? reasoning.content?.[0]?.text : "", "hm")
        assert.strictEqual(message?.type, "message")
        assert.strictEqual(custom?.type === "custom_tool_call" ? custom.input : "", "*** x\n")
        assert.deepStrictEqual(namespaced?.type === "function_call" ? [namespaced.name, namespaced.namespace] : [], ["run", "ns"])
      }
    ))

  it.live("retrieve, inputItems, delete", () =>
    using(says("Hello!"), async (client) => {
      const { id } = await client.responses.create({ model, input: "hi" })
      assert.strictEqual((await client.responses.retrieve(id)).output_text, "Hello!")
      const items = []
      for await (const item of client.responses.inputItems.list(id)) items.push(item.type)
      assert.deepStrictEqual(items, ["message"])
      await client.responses.delete(id)
      const error = await client.responses.retrieve(id).catch((cause: unknown) => cause)
      assert.instanceOf(error, NotFoundError)
    }))

  it.live("pages of input items", () =>
    using(says("Hello!"), async (client) => {
      const input = Array.from({ length: 7 }, (_, index) => ({ role: "user" as const, content: `m${index}` }))
      const { id } = await client.responses.create({ model, input })
      const texts: Array<unknown> = []
      for await (const item of client.responses.inputItems.list(id, { limit: 3, order: "asc" })) {
        if (item.type === "message") texts.push(item.content)
      }
      assert.deepStrictEqual(texts, input.map(({ content }) => [{ type: "input_text", text: content }]))
    }))

  it.live("a conversation by previous_response_id", () =>
    using(says("one", "two"), async (client, server) => {
      const first = await client.responses.create({ model, input: "a" })
      const second = await client.responses.create({ model, input: "b", previous_response_id: first.id })
      assert.strictEqual(second.output_text, "two")
      assert.strictEqual(textOf(server.engine.requests[1]!.tokens), "user:a|assistant:one|user:b|")
    }))

  it.live("a tool loop that sends the whole output back", () =>
    using(says(weatherCall, "Sunny."), async (client, server) => {
      const input: Array<OpenAI.Responses.ResponseInputItem> = [{ role: "user", content: "weather?" }]
      const first = await client.responses.create({ model, input, tools: [weather], store: false })
      for (const item of first.output) {
        // Items of an answer are items of an input.
        if (item.type === "message" || item.type === "function_call") input.push(item)
        if (item.type !== "function_call") continue
        assert.deepStrictEqual(JSON.parse(item.arguments), { city: "Paris" })
        input.push({ type: "function_call_output", call_id: item.call_id, output: "sunny" })
      }
      const second = await client.responses.create({ model, input, tools: [weather], store: false })
      assert.strictEqual(second.output_text, "Sunny.")
      assert.include(textOf(server.engine.requests[1]!.tokens), "user:weather?|assistant:I look.|tool:sunny|")
    }))

  it.live("inputTokens.count", () =>
    using(says(), async (client) => {
      const { input_tokens } = await client.responses.inputTokens.count({ model, input: "hi" })
      assert.strictEqual(input_tokens, "user:hi|".length)
    }))

  it.live("errors carry message, type, param and code", () =>
    using(says("x"), async (client) => {
      const error = await client.responses.create({ model, input: "x", background: true }).catch((cause: unknown) => cause)
      assert.instanceOf(error, BadRequestError)
      assert.strictEqual(error.param, "background")
      assert.strictEqual(error.code, "unsupported_parameter")
      assert.strictEqual(error.type, "invalid_request_error")
      assert.isString(error.requestID)
      const missing = await client.responses.create({ model: "other", input: "x" }).catch((cause: unknown) => cause)
      assert.instanceOf(missing, NotFoundError)
      const cancelled = await client.responses.cancel("resp_none").catch((cause: unknown) => cause)
      assert.instanceOf(cancelled, NotFoundError)
      const compacted = await client.responses.compact({ model, input: "x" }).catch((cause: unknown) => cause)
      assert.instanceOf(compacted, BadRequestError)
    }))

  it.live("a limit ends the stream with an incomplete response", () =>
    using(says("Hello!"), async (client) => {
      const response = await client.responses.stream({ model, input: "hi", max_output_tokens: 2 }).finalResponse()
      assert.deepStrictEqual([response.status, response.incomplete_details?.reason], ["incomplete", "max_output_tokens"])
    }))
})
