import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { generateText, streamText } from "ai"
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
  it.live.skipIf(!isThere)("chats with every provider of the AI SDK", () =>
    Effect.gen(function*() {
      yield* (yield* Engine).ready
      const id = "mashbox-demo"
      const { address } = yield* HttpServer.HttpServer
      assert("port" in address)
      const options = { baseURL: `http://127.0.0.1:${address.port}/v1`, apiKey: "unused" }
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
      Effect.provide(
        layerServerWithoutEngine.pipe(
          Layer.provideMerge(layerEngineInProcess),
          Layer.provide(Layer.succeed(Settings, { ...settings, model: demo, slots: 2 }))
        )
      )
    ))
})
