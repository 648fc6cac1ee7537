/**
 * The real server with the bundled model's tokenizer and template, over a scripted engine that gives every running request one token per
 * step, and long ones 200 tokens a second. Started with an IPC channel: sends `{ url }`, and `ServerFigures` for every `Ask`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Context, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { Auth } from "../../src/auth/Auth.ts"
import { ServedModel } from "../../src/domain/ServedModel.ts"
import { layerScripted, ScriptedEngine } from "../../src/engine/EngineScripted.ts"
import { Admission } from "../../src/generation/Admission.ts"
import { Generation } from "../../src/generation/Generation.ts"
import { disableMaglev } from "../../src/Maglev.ts"
import * as GgufMetadata from "../../src/models/GgufMetadata.ts"
import { ChatTemplate } from "../../src/prompt/ChatTemplate.ts"
import { LongPrompts } from "../../src/prompt/LongPrompts.ts"
import * as Server from "../../src/server/Server.ts"
import { Settings } from "../../src/Settings.ts"
import * as JsonLogger from "../../src/telemetry/JsonLogger.ts"
import * as GgufTokenizer from "../../src/tokenizer/GgufTokenizer.ts"
import { Tokenizer } from "../../src/tokenizer/Tokenizer.ts"
import type { Ask, ServerFigures } from "./serverProcess.ts"
import { watchTurns } from "./turnMeter.ts"

disableMaglev()

const slots = 96
/** Answers of so many tokens come at the pace of a fast engine; others as fast as they can. */
const endlessTokens = 1 << 20
const path = new URL("../../models/mashbox-demo.gguf", import.meta.url).pathname
const passage =
  "Once upon a time there was a little dragon who was shy. She lived in a cave near the sea, and every day she watched the boats. "

const program = Effect.gen(function*() {
  const metadata = yield* GgufMetadata.read(path)
  const tokenizer = GgufTokenizer.layer(metadata.vocabulary)
  const output = yield* Tokenizer.use((service) => service.encode({ text: passage, untrusted: [] })).pipe(Effect.provide(tokenizer))
  // Drawn from the passage, not repeated: the server ends an answer that says the same over and over.
  const endless = function*() {
    for (let state = 1;; state = Math.imul(state, 1664525) + 1013904223 >>> 0) yield output[1 + (state >>> 8) % (output.length - 1)] ?? 0
  }
  const { bos, eos, specialTexts } = yield* Effect.provide(Tokenizer, tokenizer)
  const source = { template: metadata.chatTemplate, bos, eos, specialTexts }
  const model = { contextLength: 1 << 24, vocabularySize: metadata.vocabulary.tokens.length, slots }
  const services = Generation.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(
      layerScripted({
        answer: ({ maxTokens }) => ({ tokens: endless(), ...(maxTokens < endlessTokens ? {} : { interval: "5 millis" as const }) }),
        model
      }),
      tokenizer,
      ChatTemplate.layer(source),
      LongPrompts.layer(metadata.vocabulary, source),
      Auth.layer,
      Admission.layer,
      Layer.succeed(ServedModel, {
        id: metadata.id,
        contextLength: model.contextLength,
        weights: "mashbox-demo.gguf",
        weightsBytes: metadata.tensorBytes,
        parameters: metadata.parameters,
        slots,
        cacheRamMib: 0,
        prefixCache: false
      })
    )),
    Layer.provideMerge(Layer.succeed(Settings, {
      model: path,
      host: "127.0.0.1",
      port: 0,
      contextLength: undefined,
      slots,
      threads: undefined,
      kvType: "f16",
      cacheRamMib: 0,
      responsesDb: undefined,
      apiKeyFile: undefined,
      apiKey: undefined,
      corsOrigins: [],
      aliases: [],
      sampling: "greedy",
      models: undefined,
      websocket: true,
      stopRepetition: 2048,
      greedyToolSyntax: false
    }))
  )
  const context = yield* Layer.build(
    Server.layer.pipe(Layer.provideMerge(services), Layer.provide(JsonLogger.layer("Info")))
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const engine = Context.get(context, ScriptedEngine)
  let turns: ReturnType<typeof watchTurns> | undefined
  process.on("message", (ask: Ask) => {
    if (ask === "watch") turns = watchTurns()
    const { system, user } = process.cpuUsage()
    const figures: ServerFigures = { cpu: user + system, engineRequests: engine.requests.length }
    process.send?.(ask === "unwatch" && turns !== undefined ? { ...figures, turns: turns() } : figures)
  })
  process.on("disconnect", () => process.exit())
  process.send?.({ url: `http://127.0.0.1:${"port" in address ? address.port : 0}` })
  return yield* Effect.never
})

NodeRuntime.runMain(Effect.scoped(program))
