import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Engine } from "../../../src/engine/Engine.ts"
import { addonPath, projectRoot } from "../../../src/engine/EnginePaths.ts"
import { layerEngineInProcess, layerServerWithoutEngine } from "../../../src/Mashbox.ts"
import { Settings } from "../../../src/Settings.ts"
import { settings } from "../../unit/server/harness.ts"

const demo = join(projectRoot, "models", "mashbox-demo.gguf")
const isThere = existsSync(demo) && existsSync(addonPath())

describe(isThere ? "the bundled model" : "the bundled model (needs the model and the built addon)", () => {
  it.live.skipIf(!isThere)("chats with the official @anthropic-ai/sdk package", () =>
    Effect.gen(function*() {
      const model = yield* (yield* Engine).ready
      const { address } = yield* HttpServer.HttpServer
      assert("port" in address)
      const client = new Anthropic({ baseURL: `http://127.0.0.1:${address.port}`, apiKey: "unused", maxRetries: 0 })
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
      Effect.provide(
        layerServerWithoutEngine.pipe(
          Layer.provideMerge(layerEngineInProcess),
          Layer.provide(Layer.succeed(Settings, { ...settings, model: demo, slots: 2 }))
        )
      )
    ))
})
