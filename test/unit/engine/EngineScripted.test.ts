import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { EngineError } from "../../../src/domain/Errors.ts"
import { greedy } from "../../../src/domain/Sampling.ts"
import { Engine, type EngineRequest } from "../../../src/engine/Engine.ts"
import { layerScripted, type Script, ScriptedEngine } from "../../../src/engine/EngineScripted.ts"

const start = (script: Script): Effect.Effect<
  {
    readonly engine: Context.Service.Shape<typeof Engine>
    readonly scripted: Context.Service.Shape<typeof ScriptedEngine>
  },
  never,
  Scope.Scope
> =>
  Effect.map(Layer.build(layerScripted(script)), (context) => ({
    engine: Context.get(context, Engine),
    scripted: Context.get(context, ScriptedEngine)
  }))

const request = (fields: Partial<EngineRequest> = {}): EngineRequest => ({
  tokens: Int32Array.from([1, 2, 3]),
  maxTokens: 100,
  stopTokens: new Int32Array(0),
  sampling: greedy,
  ...fields
})

const listenAll = () => {
  const heard: Array<ReadonlyArray<unknown>> = []
  return {
    heard,
    onToken: (...said: ReadonlyArray<unknown>) => {
      heard.push(said)
    }
  }
}

const listen = () => {
  const heard: Array<number> = []
  const first = Deferred.makeUnsafe<void>()
  return {
    heard,
    arrived: Deferred.await(first),
    onToken: (token: number) => {
      heard.push(token)
      Deferred.doneUnsafe(first, Effect.void)
    }
  }
}

function* endless(): Generator<number> {
  for (let i = 0;; i++) yield i
}

describe("layerScripted", () => {
  it.effect("gives log probabilities to requests that ask, and to no other", () =>
    Effect.gen(function*() {
      const { engine } = yield* start({
        answer: () => ({
          tokens: [10, 11],
          logprobs: (token, index) => ({ logprob: -1 - index, top: [{ token, logprob: -1 - index }, { token: 5, logprob: -4 }] })
        })
      })
      const silent = listenAll()
      yield* engine.generate(request(), silent)
      assert.deepStrictEqual(silent.heard, [[10, undefined], [11, undefined]])
      const listener = listenAll()
      yield* engine.generate(request({ topLogprobs: 1 }), listener)
      assert.deepStrictEqual(listener.heard, [
        [10, { logprob: -1, top: [{ token: 10, logprob: -1 }] }],
        [11, { logprob: -2, top: [{ token: 11, logprob: -2 }] }]
      ])
    }))

  it.effect("names the stop token that ended the output, and none before minTokens", () =>
    Effect.gen(function*() {
      const { engine } = yield* start({ answer: () => ({ tokens: [3, 3, 4, 3, 5] }) })
      const stopTokens = Int32Array.of(3)
      const at = (minTokens: number) => engine.generate(request({ stopTokens, minTokens }), listenAll())
      assert.deepInclude(yield* at(0), { reason: "stop", stopToken: 3, generatedTokens: 0 })
      assert.deepInclude(yield* at(1), { stopToken: 3, generatedTokens: 1 })
      assert.deepInclude(yield* at(2), { stopToken: 3, generatedTokens: 3 })
      const free = yield* at(4)
      assert.deepInclude(free, { reason: "stop", generatedTokens: 5 })
      assert.isUndefined(free.stopToken)
    }))

  it.effect("says what the script says, and records what it was asked", () =>
    Effect.gen(function*() {
      const { engine, scripted } = yield* start({ answer: (_, index) => ({ tokens: [10, index], cachedTokens: 2 }) })
      const listener = listen()
      const result = yield* engine.generate(request(), listener)
      assert.deepInclude(result, { reason: "stop", promptTokens: 3, cachedTokens: 2, generatedTokens: 2 })
      yield* engine.generate(request(), listener)
      assert.deepStrictEqual(listener.heard, [10, 0, 10, 1])
      assert.deepStrictEqual(scripted.requests.map(({ tokens }) => [...tokens]), [[1, 2, 3], [1, 2, 3]])
      assert.deepInclude(yield* engine.status, { _tag: "Ready", workerRestarts: 0 })
      assert.strictEqual(scripted.running(), 0)
    }))

  it.effect("ends at maxTokens, at a stop token, or as it is told", () =>
    Effect.gen(function*() {
      const { engine } = yield* start({ answer: (_, index) => index < 2 ? { tokens: endless() } : { tokens: [1], reason: "length" } })
      const limited = listen()
      assert.deepInclude(yield* engine.generate(request({ maxTokens: 3 }), limited), { reason: "length", generatedTokens: 3 })
      assert.deepStrictEqual(limited.heard, [0, 1, 2])
      const stopped = listen()
      const stop = request({ stopTokens: Int32Array.from([9, 2]) })
      assert.deepInclude(yield* engine.generate(stop, stopped), { reason: "stop", generatedTokens: 2 })
      assert.deepStrictEqual(stopped.heard, [0, 1])
      assert.deepInclude(yield* engine.generate(request(), listen()), { reason: "length", generatedTokens: 1 })
    }))

  it.effect("keeps the script's time", () =>
    Effect.gen(function*() {
      const { engine } = yield* start({ answer: () => ({ tokens: [1, 2, 3], delay: "1 seconds", interval: "100 millis" }) })
      const listener = listen()
      const fiber = yield* Effect.forkChild(engine.generate(request(), listener), { startImmediately: true })
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(listener.heard, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(listener.heard, [1])
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(listener.heard, [1, 2])
      yield* TestClock.adjust("200 millis")
      assert.deepInclude(yield* Fiber.join(fiber), { queueMs: 0, promptMs: 1000, generationMs: 300, generatedTokens: 3 })
    }))

  it.effect("streams at full speed after a delay without an interval", () =>
    Effect.gen(function*() {
      const { engine } = yield* start({ answer: () => ({ tokens: [1, 2, 3], delay: "1 seconds" }) })
      const fiber = yield* Effect.forkChild(engine.generate(request(), listen()), { startImmediately: true })
      yield* TestClock.adjust("1 seconds")
      assert.deepInclude(yield* Fiber.join(fiber), { promptMs: 1000, generationMs: 0 })
    }))

  it.effect("a step gives one token to each of `slots` requests; the others wait", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const { engine, scripted } = yield* start({ answer: () => ({ tokens: [0, 1] }), model: { slots: 2 } })
      const run = (name: string) => engine.generate(request(), { onToken: (token) => order.push(`${name}${token}`) })
      yield* Effect.all([run("a"), run("b"), run("c")], { concurrency: "unbounded" })
      assert.deepStrictEqual(order.slice(0, 4), ["a0", "b0", "a1", "b1"])
      assert.deepStrictEqual(order.slice(4), ["c0", "c1"])
      assert.strictEqual(scripted.running(), 0)
    }))

  it.effect("stops what is interrupted, running or waiting", () =>
    Effect.gen(function*() {
      const { engine, scripted } = yield* start({ answer: () => ({ tokens: endless() }), model: { slots: 1 } })
      const listener = listen()
      const endlessly = request({ maxTokens: 2 ** 31 })
      const running = yield* Effect.forkChild(engine.generate(endlessly, listener), { startImmediately: true })
      const waiting = yield* Effect.forkChild(engine.generate(endlessly, listener), { startImmediately: true })
      yield* listener.arrived
      yield* Fiber.interrupt(waiting)
      yield* Fiber.interrupt(running)
      assert.strictEqual(scripted.running(), 0)
      assert.deepStrictEqual(scripted.cancelled, [2, 1])
      const heard = listener.heard.length
      assert.deepInclude(yield* engine.generate(request({ maxTokens: 2 }), listen()), { reason: "length" })
      assert.strictEqual(listener.heard.length, heard)
    }))

  it.effect("loses its worker after so many tokens, and is ready again", () =>
    Effect.gen(function*() {
      const { engine } = yield* start({
        answer: (_, index) => index === 0 ? { tokens: endless(), fault: { _tag: "WorkerLost", afterTokens: 2 } } : { tokens: [7] },
        restartDelay: "5 seconds"
      })
      const listener = listen()
      const error = yield* Effect.flip(engine.generate(request(), listener))
      assert.strictEqual(error.reason, "WorkerLost")
      assert.deepStrictEqual(listener.heard, [0, 1])
      assert.deepInclude(yield* engine.status, { _tag: "Loading" })
      const second = yield* Effect.forkChild(engine.generate(request(), listener), { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(yield* Fiber.join(second), { generatedTokens: 1 })
      assert.deepInclude(yield* engine.status, { _tag: "Ready", workerRestarts: 1 })
    }))

  it.effect("loses its worker when a test says so", () =>
    Effect.gen(function*() {
      const { engine, scripted } = yield* start({ answer: (_, index) => ({ tokens: [1], ...(index < 3 ? { delay: "1 hour" } : {}) }) })
      const fibers = yield* Effect.forEach([0, 1, 2], () =>
        Effect.forkChild(Effect.flip(engine.generate(request(), listen())), { startImmediately: true }))
      yield* scripted.loseWorker
      for (const fiber of fibers) {
        assert.strictEqual((yield* Fiber.join(fiber)).reason, "WorkerLost")
      }
      const again = yield* Effect.forkChild(engine.generate(request(), listen()), { startImmediately: true })
      yield* TestClock.adjust(0)
      assert.deepInclude(yield* Fiber.join(again), { generatedTokens: 1 })
      assert.deepInclude(yield* engine.status, { workerRestarts: 1 })
    }))

  it.effect("fails one request, or lets it hang until it is cancelled", () =>
    Effect.gen(function*() {
      const { engine, scripted } = yield* start({
        answer: (_, index) => ({
          tokens: [1, 2, 3],
          fault: index === 0
            ? { _tag: "Failed", afterTokens: 1, code: "out_of_memory", message: "no block" }
            : { _tag: "Hang", afterTokens: 1 }
        })
      })
      const error = yield* Effect.flip(engine.generate(request(), listen()))
      assert.deepInclude(error, { reason: "OutOfMemory", message: "no block" })
      const listener = listen()
      const hanging = yield* Effect.forkChild(engine.generate(request(), listener), { startImmediately: true })
      yield* listener.arrived
      yield* TestClock.adjust("1 day")
      assert.strictEqual(scripted.running(), 1)
      yield* Fiber.interrupt(hanging)
      assert.strictEqual(scripted.running(), 0)
      assert.deepStrictEqual(listener.heard, [1])
    }))

  it.effect("loads late, never, or not at all", () =>
    Effect.gen(function*() {
      const answer: Script["answer"] = () => ({ tokens: [1] })
      const late = yield* start({ answer, load: { readyAfter: "1 minute" } })
      const waiting = yield* Effect.forkChild(late.engine.generate(request(), listen()), { startImmediately: true })
      assert.deepInclude(yield* late.engine.status, { _tag: "Loading" })
      yield* TestClock.adjust("1 minute")
      assert.deepInclude(yield* Fiber.join(waiting), { generatedTokens: 1 })

      const never = yield* start({ answer, load: "never" })
      const forever = yield* Effect.forkChild(never.engine.ready, { startImmediately: true })
      yield* TestClock.adjust("1 day")
      assert.isUndefined(forever.pollUnsafe())
      assert.deepInclude(yield* never.engine.status, { _tag: "Loading" })

      const error = new EngineError({ reason: "LoadFailed", message: "broken file", code: "truncated" })
      const failed = yield* start({ answer, load: { error } })
      assert.strictEqual(yield* Effect.flip(failed.engine.ready), error)
      assert.strictEqual(yield* Effect.flip(failed.engine.generate(request(), listen())), error)
      assert.deepInclude(yield* failed.engine.status, { _tag: "Failed", error })
    }))
})
