import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI, { APIError, BadRequestError, RateLimitError } from "openai"
import type { ScriptedAnswer } from "../../../src/engine/ScriptedScheduler.ts"
import { eventually, type Harness, harness, type HarnessOptions, textOf, tokensOf, user } from "../../unit/server/harness.ts"

const model = "demo/model"

const says = (...texts: ReadonlyArray<string>): HarnessOptions => ({
  script: { answer: (_request, index) => ({ tokens: tokensOf(texts[index] ?? texts.at(-1) ?? "") }) }
})

const using = (options: HarnessOptions, use: (client: OpenAI, server: Harness) => Promise<void>) =>
  Effect.gen(function*() {
    const server = yield* harness(options)
    yield* Effect.promise(() => use(new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0 }), server))
  })

const messages = [{ role: "user" as const, content: "weather?" }]

const call = "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"

const tools = [{
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "Weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
  }
}]

/** The tool, for the helpers that run it. */
const runnable = (seen: Array<string>) => [{
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "Weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    parse: (text: string): { readonly city: string } => JSON.parse(text),
    function: ({ city }: { readonly city: string }) => {
      seen.push(city)
      return `sunny in ${city}`
    }
  }
}]

describe("the official openai package", () => {
  it.live("chat.completions.create", () =>
    using(says("Hello!"), async (client) => {
      const answer = await client.chat.completions.create({ model, messages, n: 2, seed: 3 })
      assert.deepStrictEqual(answer.choices.map(({ message }) => message.content), ["Hello!", "Hello!"])
      assert.strictEqual(answer.usage?.completion_tokens, 12)
      assert.match(answer._request_id ?? "", /^req_/)
    }))

  it.live("functions, the older form of tools", () =>
    using(says(call), async (client) => {
      const functions = tools.map((tool) => tool.function)
      const answer = await client.chat.completions.create({ model, messages, functions, function_call: { name: "get_weather" } })
      assert.deepStrictEqual(answer.choices[0]?.message.function_call, { name: "get_weather", arguments: "{\"city\": \"Paris\"}" })
      assert.strictEqual(answer.choices[0]?.finish_reason, "function_call")
      const stream = client.chat.completions.stream({ model, messages, functions })
      const final = (await stream.finalChatCompletion()).choices[0]
      assert.deepStrictEqual(final?.message.function_call, { name: "get_weather", arguments: "{\"city\": \"Paris\"}" })
      assert.strictEqual(final?.finish_reason, "function_call")
    }))

  it.live("a raw stream, with usage", () =>
    using(says("Hello!"), async (client) => {
      let text = ""
      let total = 0
      const stream = await client.chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } })
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? ""
        total = chunk.usage?.total_tokens ?? total
      }
      assert.strictEqual(text, "Hello!")
      assert.strictEqual(total, "user:weather?|".length + 6)
    }))

  it.live("leaving a stream cancels it", () =>
    using({
      script: {
        answer: () => ({
          tokens: (function*() {
            while (true) yield "x".charCodeAt(0)
          })(),
          interval: "1 millis"
        })
      }
    }, async (client, server) => {
      const stream = await client.chat.completions.create({ model, messages, stream: true })
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content === "x") break
      await eventually(() => server.engine.cancelled.length === 1)
    }))

  it.live("the stream helper: text, calls, final message", () =>
    using(says(call), async (client) => {
      const seen: Array<string> = []
      const stream = client.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } })
        .on("content.delta", ({ delta }) => seen.push(delta))
        .on("tool_calls.function.arguments.delta", ({ arguments_delta }) => seen.push(arguments_delta))
      const answer = await stream.finalChatCompletion()
      const [choice] = answer.choices
      assert.strictEqual(choice?.finish_reason, "tool_calls")
      assert.strictEqual(choice?.message.content, "I look.")
      assert.deepStrictEqual(choice?.message.tool_calls?.map((own) => own.type === "function" ? own.function.name : ""), ["get_weather"])
      assert.strictEqual((await stream.finalFunctionToolCall())?.arguments, "{\"city\": \"Paris\"}")
      assert.strictEqual(seen.join(""), "I look.{\"city\": \"Paris\"}")
      assert.isAbove((await stream.totalUsage()).total_tokens, 0)
    }))

  for (const stream of [false, true]) {
    it.live(`runTools, ${stream ? "streamed" : "whole"}`, () =>
      using(says(call, "It is sunny in Paris."), async (client, server) => {
        const seen: Array<string> = []
        const text = stream
          ? await client.chat.completions.runTools({ model, messages, tools: runnable(seen), stream: true }).finalContent()
          : await client.chat.completions.runTools({ model, messages, tools: runnable(seen) }).finalContent()
        assert.strictEqual(text, "It is sunny in Paris.")
        assert.deepStrictEqual(seen, ["Paris"])
        assert.include(textOf(server.engine.requests[1]?.tokens ?? []), "tool:sunny in Paris|")
      }))
  }

  it.live("errors carry status, code, param and request id", () =>
    using(says("x"), async (client) => {
      const failure = async (body: object) => {
        try {
          await client.chat.completions.create({ model, messages, ...body })
        } catch (error) {
          assert(error instanceof APIError)
          return error
        }
        return assert.fail("no error")
      }
      const unsupported = await failure({ use_beam_search: true })
      assert.instanceOf(unsupported, BadRequestError)
      assert.deepInclude(unsupported, {
        status: 400,
        code: "unsupported_parameter",
        param: "use_beam_search",
        type: "invalid_request_error"
      })
      assert.isString(unsupported.requestID)
      assert.deepInclude(await failure({ model: "other" }), { status: 404, code: "model_not_found" })
      assert.deepInclude(await failure({ messages: user("x".repeat(5_000)), max_tokens: -1 }), { status: 400, param: "max_tokens" })
    }))

  it.live("an error in the middle of a stream is thrown", () =>
    using({
      script: { answer: () => ({ tokens: tokensOf("Hello!"), interval: "2 millis", fault: { _tag: "WorkerLost", afterTokens: 3 } }) }
    }, async (client) => {
      let text = ""
      try {
        for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
          text += chunk.choices[0]?.delta.content ?? ""
        }
        assert.fail("no error")
      } catch (error) {
        assert(error instanceof APIError)
        assert.strictEqual(error.code, "engine_lost")
      }
      assert.strictEqual(text, "Hel")
    }))

  it.live("is sent away while the model loads, and served when it comes back", () =>
    using({ script: { answer: () => ({ tokens: tokensOf("ok") }), load: { readyAfter: "300 millis" } } }, async (_, server) => {
      const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 2 })
      const answer = await client.chat.completions.create({ model, messages })
      assert.strictEqual(answer.choices[0]?.message.content, "ok")
      assert.isAbove(server.log.length, 0)
    }))

  it.live("a full queue is a RateLimitError with Retry-After", () =>
    using({
      script: { answer: (): ScriptedAnswer => ({ tokens: [], fault: { _tag: "Hang", afterTokens: 0 } }) },
      settings: { slots: 1 },
      admission: { maxWaitingPerTenant: 0 }
    }, async (client, server) => {
      const stop = new AbortController()
      const holder = client.chat.completions.create({ model, messages }, { signal: stop.signal }).catch(() => undefined)
      await eventually(() => server.engine.requests.length === 1)
      try {
        await client.chat.completions.create({ model, messages })
        assert.fail("no error")
      } catch (error) {
        assert(error instanceof RateLimitError)
        assert.isAtLeast(Number(error.headers?.get("retry-after")), 1)
      }
      stop.abort()
      await holder
    }))
})
