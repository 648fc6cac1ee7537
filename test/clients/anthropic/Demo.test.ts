import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Engine } from "../../../src/engine/Engine.ts"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"

describe(`the bundled model${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("chats with the official @anthropic-ai/sdk package", () =>
    Effect.gen(function*() {
      const url = yield* demoUrl
      const model = yield* (yield* Engine).ready
      const client = new Anthropic({ baseURL: url, apiKey: "unused", maxRetries: 0 })
      yield* Effect.promise(async () => {
        const body = { model: "any", max_tokens: 40, messages: [{ role: "user" as const, content: "What is the capital of France?" }] }
        const message = await client.messages.create(body)
        const [block] = message.content
        assert(block?.type === "text")
        assert.strictEqual(block.text, "The capital of France is Paris.")
        assert.strictEqual(message.stop_reason, "end_turn")
        const { usage } = message
        const counted = await client.messages.countTokens({ model: "any", messages: body.messages })
        assert.strictEqual(counted.input_tokens, usage.input_tokens + (usage.cache_read_input_tokens ?? 0))
        assert.isBelow(counted.input_tokens, model.contextLength)
        const streamed = await client.messages.stream(body).finalMessage()
        assert.deepStrictEqual(streamed.content, message.content)
      })
    }).pipe(
      Effect.provide(layerDemo)
    ))
})
