import { createOpenAI } from "@ai-sdk/openai"
import { assert, describe, it } from "@effect/vitest"
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai"
import { Effect } from "effect"
import { type Harness, harness, type HarnessOptions, textOf, tokensOf } from "../../unit/server/harness.ts"

const says = (...texts: ReadonlyArray<string>): HarnessOptions => ({
  script: { answer: (_request, index) => ({ tokens: tokensOf(texts[index] ?? "") }) }
})

const modelOf = (server: Harness) => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused" }).responses("demo/model")

/** The AI SDK, which speaks Responses where nothing else is said, against a server that says one text after the other. */
const using = (options: HarnessOptions, use: (model: ReturnType<typeof modelOf>, server: Harness) => Promise<void>) =>
  Effect.gen(function*() {
    const server = yield* harness(options)
    yield* Effect.promise(() => use(modelOf(server), server))
  })

const tools = {
  get_weather: tool({
    description: "Weather of a city",
    inputSchema: jsonSchema<{ readonly city: string }>({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
    execute: ({ city }) => `sunny in ${city}`
  })
}

const call = "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"

describe("the AI SDK on Responses", () => {
  it.live("generateText", () =>
    using(says("Hello!"), async (model) => {
      const { finishReason, text, usage } = await generateText({ model, prompt: "hi", maxRetries: 0 })
      assert.deepStrictEqual([text, finishReason, usage.outputTokens], ["Hello!", "stop", 6])
    }))

  it.live("streamText", () =>
    using(says("Hello!"), async (model) => {
      const result = streamText({ model, prompt: "hi", maxRetries: 0 })
      let text = ""
      for await (const part of result.textStream) text += part
      assert.strictEqual(text, "Hello!")
      assert.strictEqual(await result.finishReason, "stop")
    }))

  it.live("a tool loop, which refers to earlier items by id", () =>
    using(says(call, "It is sunny."), async (model, server) => {
      const { steps, text } = await generateText({ model, prompt: "weather?", tools, stopWhen: stepCountIs(3), maxRetries: 0 })
      assert.strictEqual(text, "It is sunny.")
      assert.strictEqual(steps.length, 2)
      assert.strictEqual(textOf(server.engine.requests[1]!.tokens), "user:weather?|assistant:I look.|tool:sunny in Paris|")
    }))

  it.live("a streamed tool loop", () =>
    using(says(call, "It is sunny."), async (model) => {
      const result = streamText({ model, prompt: "weather?", tools, stopWhen: stepCountIs(3), maxRetries: 0 })
      let errors = 0
      for await (const part of result.fullStream) if (part.type === "error") errors++
      assert.strictEqual(errors, 0)
      assert.strictEqual(await result.text, "It is sunny.")
    }))
})
