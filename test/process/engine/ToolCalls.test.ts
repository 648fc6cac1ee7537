import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { HttpServer } from "effect/http"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Engine } from "../../../src/engine/Engine.ts"
import { addonPath, projectRoot } from "../../../src/engine/EnginePaths.ts"
import { syntaxes } from "../../../src/generation/tools/syntaxes.ts"
import { layerEngineInProcess, layerServerWithoutEngine } from "../../../src/Mashbox.ts"
import { Settings } from "../../../src/Settings.ts"
import { checkChatStream } from "../../support/ChatStreamChecker.ts"
import { type Schema, valid } from "../../support/SchemaOracle.ts"
import { settings } from "../../unit/server/harness.ts"

const demo = join(projectRoot, "models", "mashbox-demo.gguf")
const isThere = existsSync(demo) && existsSync(addonPath())

const weather = {
  type: "object",
  properties: {
    city: { type: "string", minLength: 1, maxLength: 12 },
    days: { type: "integer", minimum: 1, maximum: 14 },
    unit: { enum: ["c", "f"] },
    tags: { type: "array", items: { type: "string", maxLength: 6 }, maxItems: 2 },
    exact: { type: ["boolean", "null"] }
  },
  required: ["city", "unit", "exact"],
  additionalProperties: false
}
const nothing = { type: "object", properties: {}, additionalProperties: false }
const schemas: Readonly<Record<string, Schema>> = { get_weather: weather, ping: nothing }

const tool = (name: string, strict: boolean) => ({
  type: "function",
  function: { name, description: `does ${name}`, parameters: schemas[name], strict }
})

interface Answer {
  readonly choices: ReadonlyArray<{
    readonly finish_reason: string
    readonly message: { readonly tool_calls?: ReadonlyArray<{ readonly function: { readonly name: string; readonly arguments: string } }> }
  }>
}

const catalogEntry = (toolSyntax: string) => ({
  id: "mashbox-demo",
  file: demo,
  aliases: [],
  chatTemplate: undefined,
  toolSyntax,
  reasoning: undefined,
  preTokenizer: undefined,
  sampling: {}
})

const layerServer = (toolSyntax: string) =>
  layerServerWithoutEngine.pipe(
    Layer.provideMerge(layerEngineInProcess),
    Layer.provide(Layer.succeed(Settings, { ...settings, model: demo, slots: 2, catalogEntry: catalogEntry(toolSyntax) })),
    Layer.provide(Logger.layer([]))
  )

describe(isThere ? "calls of the bundled model" : "calls of the bundled model (needs the model and the built addon)", () => {
  for (const { name } of syntaxes) {
    it.live.skipIf(!isThere)(
      `are valid in ${name}, however it is sampled: forced, named and strict, streamed and whole`,
      () =>
        Effect.gen(function*() {
          yield* (yield* Engine).ready
          const { address } = yield* HttpServer.HttpServer
          assert("port" in address)
          const url = `http://127.0.0.1:${address.port}/v1/chat/completions`
          const send = async (body: object) => {
            const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
            const response = await fetch(url, init)
            const text = await response.text()
            assert.strictEqual(response.status, 200, text)
            return text
          }
          const ways = [
            { tool_choice: "required", tools: [tool("get_weather", false), tool("ping", false)] },
            {
              tool_choice: { type: "function", function: { name: "get_weather" } },
              tools: [tool("get_weather", false), tool("ping", false)]
            },
            { tools: [tool("get_weather", true), tool("ping", true)] }
          ]
          const messages = [{ role: "user", content: "What is the weather in Paris? Call the tool." }]
          let calls = 0
          for (const [index, way] of ways.entries()) {
            for (const temperature of [0, 1.5]) {
              const body = { messages, ...way, temperature, seed: 5 + index, max_tokens: 300, parallel_tool_calls: false }
              const answer: Answer = yield* Effect.promise(async () => JSON.parse(await send(body)))
              const [choice] = answer.choices
              const own = choice?.message.tool_calls ?? []
              const label = JSON.stringify([name, index, temperature, choice])
              if (index < 2) assert.strictEqual(own.length, 1, label)
              for (const call of own) {
                calls++
                if (choice?.finish_reason === "length") continue
                const schema = schemas[call.function.name]
                assert.isTrue(schema !== undefined && valid(schema, JSON.parse(call.function.arguments)), label)
              }
              if (index === 1) assert.strictEqual(own[0]?.function.name, "get_weather", label)
              const streamed = checkChatStream(yield* Effect.promise(() => send({ ...body, stream: true }))).choices[0]
              assert.deepStrictEqual(
                streamed?.toolCalls.map((call) => [call.name, call.arguments]),
                own.map((call) => [call.function.name, call.function.arguments])
              )
            }
          }
          assert.isAtLeast(calls, 2)
        }).pipe(Effect.provide(layerServer(name))),
      60_000
    )
  }
})
