import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai"
import { Effect } from "effect"
import { type Harness, harness, type HarnessOptions, textOf, tokensOf } from "../../unit/server/harness.ts"

const says = (...texts: ReadonlyArray<string>): HarnessOptions => ({
  script: { answer: (_request, index) => ({ tokens: tokensOf(texts[index] ?? "") }) }
})

const id = "demo/model"

/** Every provider package of the AI SDK that speaks one of the server's dialects. */
const providers = {
  "openai, on Responses": (baseURL: string) => createOpenAI({ baseURL, apiKey: "unused" }).responses(id),
  "openai, on Chat Completions": (baseURL: string) => createOpenAI({ baseURL, apiKey: "unused" }).chat(id),
  "openai-compatible": (baseURL: string) => createOpenAICompatible({ name: "mashbox", baseURL, includeUsage: true }).chatModel(id),
  anthropic: (baseURL: string) => createAnthropic({ baseURL, apiKey: "unused" }).messages(id)
}

const tools = {
  get_weather: tool({
    description: "Weather of a city",
    inputSchema: jsonSchema<{ readonly city: string }>({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
    execute: ({ city }) => `sunny in ${city}`
  })
}

const call = "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"

const afterCall = "user:weather?|assistant:I look.|tool:sunny in Paris|"

for (const [name, modelAt] of Object.entries(providers)) {
  const using = (
    options: HarnessOptions,
    use: (model: ReturnType<typeof modelAt>, server: Harness) => Promise<void>
  ) =>
    Effect.gen(function*() {
      const server = yield* harness(options)
      yield* Effect.promise(() => use(modelAt(`${server.url}/v1`), server))
    })

  describe(`the AI SDK: ${name}`, () => {
    it.live("generateText", () =>
      using(says("Hello!"), async (model) => {
        const { finishReason, text, usage } = await generateText({ model, prompt: "hi", maxRetries: 0 })
        assert.deepStrictEqual([text, finishReason, usage.inputTokens, usage.outputTokens], ["Hello!", "stop", "user:hi|".length, 6])
      }))

    it.live("streamText", () =>
      using(says("Hello!"), async (model) => {
        const result = streamText({ model, prompt: "hi", maxRetries: 0 })
        let text = ""
        for await (const part of result.textStream) text += part
        assert.strictEqual(text, "Hello!")
        assert.strictEqual(await result.finishReason, "stop")
        assert.strictEqual((await result.usage).outputTokens, 6)
      }))

    it.live("a limit is a finish reason", () =>
      using(says("Hello!"), async (model) => {
        const { finishReason, text } = await generateText({ model, prompt: "hi", maxOutputTokens: 3, maxRetries: 0 })
        assert.deepStrictEqual([text, finishReason], ["Hel", "length"])
      }))

    it.live("a tool loop", () =>
      using(says(call, "It is sunny."), async (model, server) => {
        const { steps, text } = await generateText({ model, prompt: "weather?", tools, stopWhen: stepCountIs(3), maxRetries: 0 })
        assert.strictEqual(text, "It is sunny.")
        assert.strictEqual(steps.length, 2)
        assert.strictEqual(textOf(server.engine.requests[1]!.tokens), afterCall)
      }))

    it.live("a streamed tool loop", () =>
      using(says(call, "It is sunny."), async (model, server) => {
        const result = streamText({ model, prompt: "weather?", tools, stopWhen: stepCountIs(3), maxRetries: 0 })
        let errors = 0
        for await (const part of result.fullStream) if (part.type === "error") errors++
        assert.strictEqual(errors, 0)
        assert.strictEqual(await result.text, "It is sunny.")
        assert.strictEqual(textOf(server.engine.requests[1]!.tokens), afterCall)
      }))

    it.live("an error carries status and message", () =>
      using(says(), async (model) => {
        const error = await generateText({ model, prompt: "no template", maxRetries: 0 }).then(
          () => undefined,
          (cause: unknown) => cause
        )
        assert.instanceOf(error, APICallError)
        assert.strictEqual(error.statusCode, 400)
        assert.match(error.message, /roles must alternate/)
      }))
  })
}
