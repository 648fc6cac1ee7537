import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
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

const names = ["open_door", "send_mail", "read_file", "play_song"]
const keys = ["text", "path", "kind"]
const tools = names.map((name) => ({
  type: "function",
  function: {
    name,
    parameters: {
      type: "object",
      properties: Object.fromEntries(keys.map((key) => [key, { type: "string", minLength: 1, maxLength: 12 }])),
      required: ["kind"],
      additionalProperties: false
    }
  }
}))

interface Answer {
  readonly choices: ReadonlyArray<{
    readonly message: { readonly tool_calls: ReadonlyArray<{ readonly function: { readonly name: string; readonly arguments: string } }> }
  }>
}

const layerServer = (greedyToolSyntax: boolean) =>
  layerServerWithoutEngine.pipe(
    Layer.provideMerge(layerEngineInProcess),
    Layer.provide(Layer.succeed(Settings, { ...settings, model: demo, slots: 2, greedyToolSyntax })),
    Layer.provide(Logger.layer([]))
  )

const seeds = [...Array(10).keys()]

/** What a hot model calls, seed by seed: the name, the first key and its value. */
const calls = (greedyToolSyntax: boolean, temperature: number) =>
  Effect.gen(function*() {
    yield* (yield* Engine).ready
    const { address } = yield* HttpServer.HttpServer
    assert("port" in address)
    const url = `http://127.0.0.1:${address.port}/v1/chat/completions`
    return yield* Effect.forEach(seeds, (seed) =>
      Effect.promise(async () => {
        const messages = [{ role: "user", content: "Surprise me." }]
        const body = { messages, tools, tool_choice: "required", parallel_tool_calls: false, temperature, seed, max_tokens: 400 }
        const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
        const answer: Answer = JSON.parse(await response.text())
        const called = answer.choices[0]?.message.tool_calls[0]?.function
        const [key, value] = /^\{"(\w+)": ("[^"]*")/.exec(called?.arguments ?? "")?.slice(1) ?? []
        return { name: called?.name, key, value }
      }))
  }).pipe(Effect.provide(layerServer(greedyToolSyntax)))

const different = (values: ReadonlyArray<unknown>) => new Set(values).size

describe(isThere ? "greedy syntax of calls" : "greedy syntax of calls (needs the model and the built addon)", () => {
  it.live.skipIf(!isThere)("names and keys are those of temperature 0, values are sampled", () =>
    Effect.gen(function*() {
      const [coldest] = yield* calls(false, 0)
      const greedy = yield* calls(true, 1.5)
      for (const { key, name } of greedy) assert.deepStrictEqual({ key, name }, { key: coldest?.key, name: coldest?.name })
      assert.isAbove(different(greedy.map(({ value }) => value)), 1, JSON.stringify(greedy))
      const sampled = yield* calls(false, 1.5)
      assert.isAbove(different(sampled.map(({ key, name }) => `${name} ${key}`)), 1, JSON.stringify(sampled))
    }))
})
