import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Engine, type EngineRequest } from "../../../src/engine/Engine.ts"
import { addonPath, projectRoot } from "../../../src/engine/EnginePaths.ts"
import { layerProcess } from "../../../src/engine/EngineProcess.ts"
import { choice, type Grammar, type Node, repeat, rule, sequence, text } from "../../../src/grammar/Ir.ts"
import { encodeGrammar } from "../../../src/grammar/IrEncoder.ts"
import * as JsonSchema from "../../../src/grammar/JsonSchema.ts"
import * as GgufMetadata from "../../../src/models/GgufMetadata.ts"
import * as GgufTokenizer from "../../../src/tokenizer/GgufTokenizer.ts"
import { type EngineService, load, request, workerPid } from "./harness.ts"

const demo = join(projectRoot, "models", "mashbox-demo.gguf")

const only = (node: Node): Uint8Array => encodeGrammar({ root: "root", rules: [{ name: "root", node }] })

const start = Effect.gen(function*() {
  const { vocabulary } = yield* GgufMetadata.read(demo)
  const tokenizer = yield* GgufTokenizer.make(vocabulary)
  const context = yield* Layer.build(layerProcess({ load: load(demo) }))
  return { engine: Context.get(context, Engine), tokenizer }
})

const run = (engine: EngineService, tokenBytes: (token: number) => Uint8Array, fields: Partial<EngineRequest>) =>
  Effect.suspend(() => {
    const heard: Array<number> = []
    return Effect.map(
      engine.generate({ ...request([1, 2, 3], 300), ...fields }, { onToken: (token) => heard.push(token) }),
      (result) => ({ text: Buffer.concat(heard.map(tokenBytes)).toString(), tokens: heard.length, result })
    )
  })

const weather = {
  type: "object",
  properties: {
    city: { type: "string", minLength: 2, maxLength: 30 },
    days: { type: "integer", minimum: 1, maximum: 14 },
    units: { enum: ["metric", "imperial"] }
  },
  required: ["city", "days", "units"],
  additionalProperties: false
}

describe.skipIf(!existsSync(addonPath()))("a grammar in the engine process", () => {
  it.live("holds eight sampled outputs at once to a JSON schema", () =>
    Effect.gen(function*() {
      const { engine, tokenizer } = yield* start
      const grammar = encodeGrammar(Result.getOrThrow(JsonSchema.compile(weather)))
      const outputs = yield* Effect.forEach(
        [1, 2, 3, 4, 5, 6, 7, 8],
        (seed) =>
          run(engine, tokenizer.tokenBytes, {
            grammar,
            stopTokens: tokenizer.endTokens,
            sampling: { ...request([]).sampling, temperature: 1.3, seed, logitBias: [[seed * 11, 50]] }
          }),
        { concurrency: "unbounded" }
      )
      for (const { result, text, tokens } of outputs) {
        assert.strictEqual(result.generatedTokens, tokens)
        assert.strictEqual(result.reason, "stop")
        const { city, days, units } = JSON.parse(text)
        assert.isAtLeast([...city].length, 2)
        assert.isAtMost([...city].length, 30)
        assert.isTrue(Number.isInteger(days) && days >= 1 && days <= 14)
        assert.include(["metric", "imperial"], units)
      }
      assert.isAbove(new Set(outputs.map(({ text }) => text)).size, 1)
    }))

  it.live("lets free text go on until a trigger", () =>
    Effect.gen(function*() {
      const { engine, tokenizer } = yield* start
      const digits = repeat({ kind: "class", ranges: [[0x30, 0x39]] }, 3, 5)
      const grammar = only(sequence({ kind: "free", until: ["e"] }, text(" is "), digits))
      const { result, text: output } = yield* run(engine, tokenizer.tokenBytes, { grammar, stopTokens: tokenizer.endTokens })
      if (result.reason === "stop") assert.match(output, /^[^e]*e is \d{3,5}$/s)
      else assert.match(output, /^[^e]*(e( (i(s( \d*)?)?)?)?)?$/s)
    }))

  it.live("refuses grammars by name and goes on in the same process", () =>
    Effect.gen(function*() {
      const { engine, tokenizer } = yield* start
      const pid = yield* Effect.andThen(engine.ready, workerPid(engine))
      const refused = (grammar: Uint8Array) => Effect.flip(run(engine, tokenizer.tokenBytes, { grammar }))
      const missing: Grammar = { root: "a", rules: [{ name: "a", node: choice(text("x"), rule("somewhere")) }] }
      const first = yield* refused(encodeGrammar(missing))
      assert.deepInclude(first, { reason: "Rejected" })
      assert.include(first.message, "\"somewhere\" is not defined")
      let deep: Node = text("a")
      for (let i = 0; i < 1000; i++) deep = repeat(sequence(deep, text("b")), 0, 2)
      assert.deepInclude(yield* refused(only(deep)), { reason: "Rejected", code: "too_complex" })
      assert.deepInclude(yield* refused(Uint8Array.of(1, 2, 3)), { reason: "Rejected" })
      const { text: output } = yield* run(engine, tokenizer.tokenBytes, { grammar: only(text("still here")) })
      assert.strictEqual(output, "still here")
      assert.strictEqual(yield* workerPid(engine), pid)
    }))
})
