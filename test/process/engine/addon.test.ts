import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Engine } from "../../../src/engine/Engine.ts"
import { layerInProcess } from "../../../src/engine/EngineInProcess.ts"
import { addonPath, projectRoot } from "../../../src/engine/EnginePaths.ts"
import { layerProcess } from "../../../src/engine/EngineProcess.ts"
import type { NativeLoadOptions } from "../../../src/engine/Native.ts"
import { type EngineService, firstToken, generate, isAlive, request, workerPid } from "./harness.ts"

const missing = !existsSync(addonPath())

const load: NativeLoadOptions = {
  path: join(projectRoot, "models", "mashbox-demo.gguf"),
  threads: 2,
  slots: 4,
  contextLength: 512,
  kvType: "f16",
  batchTokens: 64
}

const build = (layer: Layer.Layer<Engine>): Effect.Effect<EngineService, never, Scope.Scope> =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, Engine))

const prompts = Array.from({ length: 8 }, (_, i) => [5 + i, 17, 42, 100 + i, 7])

describe.skipIf(missing)(`the native addon (${missing ? "not built: skipped" : "built"})`, () => {
  it.live("kill -9 under 8 requests: all are lost, all are served when sent again, by the same tokens as before", () =>
    Effect.gen(function*() {
      const engine = yield* build(layerProcess({ load, restartDelay: "1 millis" }))
      const { contextLength, slots } = yield* engine.ready
      assert.strictEqual(slots, 4)
      const before = yield* Effect.forEach(prompts, (prompt) => generate(engine, prompt, 24), { concurrency: "unbounded" })
      for (const { result } of before) assert.deepInclude(result, { reason: "length", promptTokens: 5, generatedTokens: 24 })

      const { arrived, listener } = firstToken()
      const waiting = yield* Effect.forEach(
        prompts,
        (prompt) => Effect.forkChild(Effect.flip(engine.generate(request(prompt, contextLength - 8), listener)), { startImmediately: true })
      )
      yield* arrived
      const pid = yield* workerPid(engine)
      process.kill(pid, "SIGKILL")
      for (const fiber of waiting) assert.strictEqual((yield* Fiber.join(fiber)).reason, "WorkerLost")

      const again = yield* Effect.forEach(prompts, (prompt) => generate(engine, prompt, 24), { concurrency: "unbounded" })
      assert.deepStrictEqual(again.map(({ tokens }) => tokens), before.map(({ tokens }) => tokens))
      const status = yield* engine.status
      assert.deepInclude(status, { _tag: "Ready", workerRestarts: 1 })
      assert.isFalse(isAlive(pid))
    }))

  it.live("gives the same tokens in this process as in a worker", () =>
    Effect.gen(function*() {
      const answers = yield* Effect.forEach([layerInProcess({ load }), layerProcess({ load })], (layer) =>
        Effect.scoped(Effect.gen(function*() {
          const engine = yield* build(layer)
          return yield* Effect.forEach(prompts, (prompt) =>
            Effect.map(generate(engine, prompt, 16), ({ tokens }) => tokens))
        })))
      assert.deepStrictEqual(answers[0], answers[1])
    }))

  it.live("frees the slot of what is interrupted", () =>
    Effect.gen(function*() {
      const engine = yield* build(layerProcess({ load: { ...load, slots: 1 } }))
      const { contextLength } = yield* engine.ready
      for (let round = 0; round < 3; round++) {
        const { arrived, listener } = firstToken()
        const fiber = yield* Effect.forkChild(engine.generate(request([1, 2, 3], contextLength - 8), listener))
        yield* arrived
        yield* Fiber.interrupt(fiber)
      }
      assert.strictEqual((yield* generate(engine, [1, 2, 3], 4)).tokens.length, 4)
    }))

  it.live("refuses what cannot run, and goes on", () =>
    Effect.gen(function*() {
      const engine = yield* build(layerProcess({ load }))
      const { contextLength, vocabularySize } = yield* engine.ready
      for (const tokens of [[], [vocabularySize], [-1], Array.from({ length: contextLength + 1 }, () => 1)]) {
        assert.strictEqual((yield* Effect.flip(generate(engine, tokens))).reason, "Rejected")
      }
      assert.strictEqual((yield* generate(engine, [1], 2)).tokens.length, 2)
      assert.deepInclude(yield* engine.status, { workerRestarts: 0 })
    }))

  it.live("says what is wrong with a file, for good", () =>
    Effect.gen(function*() {
      const broken = join(projectRoot, "test", "fixtures", "golden", "broken", "version-4.gguf")
      const engine = yield* build(layerProcess({ load: { ...load, path: broken } }))
      const error = yield* Effect.flip(engine.ready)
      assert.deepInclude(error, { reason: "LoadFailed", code: "unsupported" })
      const absent = yield* build(layerProcess({ load: { ...load, path: "/nowhere/model.gguf" } }))
      assert.deepInclude(yield* Effect.flip(absent.ready), { reason: "LoadFailed", code: "not_found" })
    }))

  it.live("closes while requests run, and while it loads", () =>
    Effect.gen(function*() {
      for (const waitsForReady of [true, false]) {
        const scope = yield* Scope.make()
        const engine = yield* Scope.provide(build(layerProcess({ load })), scope)
        if (waitsForReady) yield* engine.ready
        const pid = yield* workerPid(engine)
        const running = yield* Effect.forkChild(Effect.flip(generate(engine, [1, 2], 500)), { startImmediately: true })
        yield* Scope.close(scope, Exit.void)
        assert.isFalse(isAlive(pid))
        assert.strictEqual((yield* Fiber.join(running)).reason, "WorkerLost")
      }
    }))
})
