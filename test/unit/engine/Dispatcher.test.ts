import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { EngineError } from "../../../src/domain/Errors.ts"
import { greedy } from "../../../src/domain/Sampling.ts"
import { Dispatcher } from "../../../src/engine/Dispatcher.ts"
import type { EngineRequest } from "../../../src/engine/Engine.ts"
import type { NativeSubmit } from "../../../src/engine/Native.ts"

const request: EngineRequest = {
  tokens: Int32Array.from([5, 6]),
  maxTokens: 3,
  stopTokens: Int32Array.from([2]),
  sampling: { ...greedy, temperature: 0.5, seed: 9, logitBias: [[4, -1]] }
}

const counts = { promptTokens: 2, cachedTokens: 1, generatedTokens: 1, queueMs: 1, promptMs: 2, generationMs: 3 }

const make = (maxId?: number) => {
  const submitted: Array<NativeSubmit> = []
  const cancelled: Array<number> = []
  const dispatcher = new Dispatcher({ submit: (submit) => submitted.push(submit), cancel: (id) => cancelled.push(id) }, maxId)
  const heard: Array<unknown> = []
  const start = Effect.forkChild(
    dispatcher.generate(request, {
      onToken: (token) => heard.push(token),
      onProgress: (...progress) => heard.push(progress)
    }),
    { startImmediately: true }
  )
  return { dispatcher, submitted, cancelled, heard, start, ids: () => submitted.map(({ id }) => id) }
}

describe("Dispatcher", () => {
  it.effect("submits everything that a request says, and hands on what the engine says", () =>
    Effect.gen(function*() {
      const { dispatcher, heard, start, submitted } = make()
      const fiber = yield* start
      const { sampling, ...rest } = request
      assert.deepStrictEqual(submitted, [{ id: 1, ...rest, ...sampling }])
      dispatcher.progress(1, 1, 2)
      dispatcher.token(1, 7)
      dispatcher.token(99, 8)
      dispatcher.done(1, "length", counts)
      dispatcher.token(1, 9)
      assert.deepStrictEqual(yield* Fiber.join(fiber), { reason: "length", ...counts })
      assert.deepStrictEqual(heard, [[1, 2], 7])
      assert.strictEqual(dispatcher.size, 0)
    }))

  it("keeps the share of the blocks in use, of the kind that is fuller", () => {
    const { dispatcher } = make()
    assert.isUndefined(dispatcher.cacheUse)
    dispatcher.blocks(16, 64, 0, 0)
    assert.strictEqual(dispatcher.cacheUse, 0.25)
    dispatcher.blocks(16, 64, 9, 12)
    assert.strictEqual(dispatcher.cacheUse, 0.75)
    dispatcher.blocks(0, 64, 0, 12)
    assert.strictEqual(dispatcher.cacheUse, 0)
  })

  it.effect("uses no id again before the engine has let go of it", () =>
    Effect.gen(function*() {
      const { dispatcher, ids, start } = make(4)
      const fibers = [yield* start, yield* start, yield* start]
      for (const fiber of fibers) yield* Fiber.interrupt(fiber)
      dispatcher.done(2, "cancelled", counts)
      assert.strictEqual(dispatcher.size, 2)
      yield* start
      yield* start
      dispatcher.done(1, "cancelled", counts)
      yield* start
      assert.deepStrictEqual(ids(), [1, 2, 3, 4, 2, 1])
      assert.strictEqual(dispatcher.size, 4)
    }))

  it.effect("cancels what is interrupted and stops to call its listener", () =>
    Effect.gen(function*() {
      const { cancelled, dispatcher, heard, start } = make()
      const fiber = yield* start
      dispatcher.token(1, 7)
      yield* Fiber.interrupt(fiber)
      dispatcher.token(1, 8)
      dispatcher.progress(1, 2, 2)
      dispatcher.done(1, "cancelled", counts)
      assert.deepStrictEqual(cancelled, [1])
      assert.deepStrictEqual(heard, [7])
      assert.strictEqual(dispatcher.size, 0)
    }))

  it.effect("does not cancel what has ended", () =>
    Effect.gen(function*() {
      const { cancelled, dispatcher, start } = make()
      const fiber = yield* start
      dispatcher.done(1, "stop", counts)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(cancelled, [])
    }))

  it.effect("fails what the engine fails, refuses, or cancels by itself", () =>
    Effect.gen(function*() {
      const { dispatcher, start } = make()
      const fibers = [yield* start, yield* start, yield* start, yield* start]
      dispatcher.failed(1, "rejected", "too long", "tokens")
      dispatcher.failed(2, "out_of_memory", "full")
      dispatcher.failed(3, "invalid", "broken")
      dispatcher.done(4, "cancelled", counts)
      const errors = yield* Effect.forEach(fibers, (fiber) => Effect.flip(Fiber.join(fiber)))
      assert.deepStrictEqual(errors.map(({ reason }) => reason), ["Rejected", "OutOfMemory", "Internal", "Internal"])
      assert.deepStrictEqual(errors.map(({ subject }) => subject), ["tokens", undefined, undefined, undefined])

      const refusing = new Dispatcher({
        submit() {
          throw Object.assign(new Error("no such token"), { code: "invalid", subject: "tokens" })
        },
        cancel() {}
      })
      const error = yield* Effect.flip(refusing.generate(request, { onToken() {} }))
      assert.deepInclude(error, { reason: "Rejected", code: "invalid", subject: "tokens", message: "no such token" })
      assert.strictEqual(refusing.size, 0)
    }))

  it.effect("a listener that throws ends its request alone", () =>
    Effect.gen(function*() {
      const { cancelled, dispatcher, heard, start } = make()
      const good = yield* start
      const bad = yield* Effect.forkChild(
        Effect.exit(dispatcher.generate(request, {
          onToken: () => {
            throw new Error("mine")
          }
        })),
        { startImmediately: true }
      )
      dispatcher.token(2, 1)
      dispatcher.token(2, 1)
      dispatcher.token(1, 1)
      assert.isTrue(Exit.hasDies(yield* Fiber.join(bad)))
      assert.deepStrictEqual(cancelled, [2])
      assert.deepStrictEqual(heard, [1])
      yield* Fiber.interrupt(good)
    }))

  it.effect("fails everything when it is closed", () =>
    Effect.gen(function*() {
      const { cancelled, dispatcher, ids, start } = make()
      const fibers = [yield* start, yield* start]
      const error = new EngineError({ reason: "WorkerLost", message: "gone" })
      dispatcher.close(error)
      for (const fiber of [...fibers, yield* start]) assert.strictEqual(yield* Effect.flip(Fiber.join(fiber)), error)
      assert.deepStrictEqual(ids(), [1, 2])
      assert.deepStrictEqual(cancelled, [])
    }))
})
