import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { Engine } from "../../../src/engine/Engine.ts"
import { layerInProcess } from "../../../src/engine/EngineInProcess.ts"
import { type EngineService, fakeAddon, fakeModel, firstToken, generate, load, request } from "./harness.ts"

const startEngine = (path: string, addon = fakeAddon): Effect.Effect<EngineService, never, Scope.Scope> =>
  Effect.map(Layer.build(layerInProcess({ load: load(path), addon })), (context) => Context.get(context, Engine))

describe("layerInProcess", () => {
  it.live("generates in this process", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel()
      const engine = yield* startEngine(model.path)
      const { result, tokens } = yield* generate(engine, [1, 2, 3])
      assert.deepStrictEqual(tokens, [1, 2, 3])
      assert.strictEqual(result.generatedTokens, 3)
      assert.deepInclude(yield* engine.status, { _tag: "Ready", workerPid: undefined, workerRestarts: 0 })
      assert.deepStrictEqual(model.starts(), [process.pid])
    }))

  it.live("closes the engine with its scope, and fails what runs", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel()
      const scope = yield* Scope.make()
      const engine = yield* Scope.provide(startEngine(model.path), scope)
      const { arrived, listener } = firstToken()
      const running = yield* Effect.forkChild(Effect.flip(engine.generate(request([2]), listener)))
      yield* arrived
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(model.closes(), 1)
      assert.deepInclude(yield* Fiber.join(running), { reason: "WorkerLost" })
      assert.deepInclude(yield* Effect.flip(generate(engine, [1])), { reason: "WorkerLost" })
    }))

  it.live("fails for good when the model cannot be loaded", () =>
    Effect.gen(function*() {
      const fail = { code: "inconsistent", message: "two truths", subject: "llama.block_count" }
      const engine = yield* startEngine((yield* fakeModel({ fail })).path)
      assert.deepInclude(yield* Effect.flip(engine.ready), { reason: "LoadFailed", ...fail })
      assert.deepInclude(yield* Effect.flip(generate(engine, [1])), { reason: "LoadFailed", ...fail })
      assert.deepInclude(yield* engine.status, { _tag: "Failed" })
    }))

  it.live("names an addon that is missing", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path, "/nowhere/mashbox.node")
      assert.deepInclude(yield* Effect.flip(engine.ready), { reason: "LoadFailed", code: "not_found", subject: "addon" })
    }))

  it.live("cancels, refuses and reports as a worker does", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      const { arrived, count, listener } = firstToken()
      const fiber = yield* Effect.forkChild(engine.generate(request([2]), listener))
      yield* arrived
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* generate(engine, [9])).tokens, [1])
      assert.strictEqual(count(), 1)
      assert.deepInclude(yield* Effect.flip(generate(engine, [7])), { reason: "Rejected", code: "rejected", subject: "tokens" })
      assert.deepInclude(yield* Effect.flip(generate(engine, [8])), { reason: "OutOfMemory" })
    }))

  it.live("is lost when the engine sends what is no frame", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      assert.deepInclude(yield* Effect.flip(generate(engine, [5])), { reason: "WorkerLost" })
    }))
})
