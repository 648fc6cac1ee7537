import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { generateText, streamText } from "ai"
import { Effect } from "effect"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"

describe(`the bundled model${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("chats with every provider of the AI SDK", () =>
    Effect.gen(function*() {
      const id = "mashbox-demo"
      const options = { baseURL: `${yield* demoUrl}/v1`, apiKey: "unused" }
      const models = [
        createOpenAI(options).responses(id),
        createOpenAI(options).chat(id),
        createOpenAICompatible({ name: "mashbox", ...options }).chatModel(id),
        createAnthropic(options).messages(id)
      ]
      yield* Effect.promise(async () => {
        for (const model of models) {
          const ask = { model, prompt: "What is the capital of France?", maxOutputTokens: 40, maxRetries: 0 }
          assert.strictEqual((await generateText(ask)).text, "The capital of France is Paris.")
          assert.strictEqual(await streamText(ask).text, "The capital of France is Paris.")
        }
      })
    }).pipe(
      Effect.provide(layerDemo)
    ))
})
