import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { join } from "node:path"
import { fakeModel, firstToken, generate, isAlive, request, startEngine, workerPid } from "./harness.ts"

describe("layerProcess", () => {
  it.live("generates in a worker", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      const progress: Array<readonly [number, number]> = []
      const tokens: Array<number> = []
      const result = yield* engine.generate(request([1, 2, 3]), {
        onToken: (token) => tokens.push(token),
        onProgress: (...said) => progress.push(said)
      })
      assert.deepStrictEqual(tokens, [1, 2, 3])
      assert.deepStrictEqual(progress, [[3, 3]])
      assert.deepStrictEqual(result, {
        reason: "stop",
        promptTokens: 3,
        cachedTokens: 0,
        generatedTokens: 3,
        queueMs: 1,
        promptMs: 2,
        generationMs: 3
      })
      const status = yield* engine.status
      assert.deepInclude(status, { _tag: "Ready", workerRestarts: 0 })
      assert.isTrue(isAlive(yield* workerPid(engine)))
      assert.strictEqual((yield* engine.ready).architecture, "fake")
    }))

  it.live("keeps apart what runs together", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      const answers = yield* Effect.forEach(
        Array.from({ length: 64 }, (_, i) => [1, i, i + 1]),
        (prompt) => generate(engine, prompt),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(({ tokens }) => tokens[1]), Array.from({ length: 64 }, (_, i) => i))
    }))

  it.live("keeps the secrets of the server from the worker", () =>
    Effect.gen(function*() {
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          process.env["MASHBOX_API_KEY"] = "secret"
        }),
        () =>
          Effect.sync(() => {
            delete process.env["MASHBOX_API_KEY"]
          })
      )
      const engine = yield* startEngine((yield* fakeModel()).path)
      assert.deepStrictEqual((yield* generate(engine, [1])).tokens, [1])
    }))

  it.live("fails for good, with the addon's own words, when the model cannot be loaded", () =>
    Effect.gen(function*() {
      const fail = { code: "unsupported", message: "tensor type IQ1_S is not supported", subject: "blk.0.attn_q.weight" }
      const model = yield* fakeModel({ fail })
      const engine = yield* startEngine(model.path)
      const waiting = yield* Effect.forkChild(Effect.flip(generate(engine, [1])), { startImmediately: true })
      const error = yield* Effect.flip(engine.ready)
      assert.deepInclude(error, { _tag: "EngineError", reason: "LoadFailed", ...fail })
      assert.deepInclude(yield* Fiber.join(waiting), fail)
      assert.deepInclude(yield* Effect.flip(generate(engine, [1])), fail)
      assert.deepInclude(yield* engine.status, { _tag: "Failed", error, workerPid: undefined, workerRestarts: 0 })
      assert.deepStrictEqual(model.starts().map(isAlive), [false])
    }))

  it.live("names an addon that is missing", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path, { addon: "/nowhere/mashbox.node" })
      const error = yield* Effect.flip(engine.ready)
      assert.deepInclude(error, { reason: "LoadFailed", code: "not_found", subject: "addon" })
      assert.include(error.message, "/nowhere/mashbox.node")
    }))

  it.live("refuses an addon that is none", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path, { addon: join(import.meta.dirname, "../../unit/engine/chunks.ts") })
      assert.deepInclude(yield* Effect.flip(engine.ready), { reason: "LoadFailed", code: "invalid" })
    }))

  it.live("starts again when a worker crashes while it loads, and lets requests wait", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel({ crashes: 2 })
      const engine = yield* startEngine(model.path)
      assert.deepStrictEqual((yield* generate(engine, [1, 5])).tokens, [1, 5])
      assert.deepInclude(yield* engine.status, { _tag: "Ready", workerRestarts: 2 })
      assert.deepStrictEqual(model.starts().map(isAlive), [false, false, true])
    }))

  it.live("gives up after a row of crashes, with the worker's last words", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel({ crashes: 1000 })
      const engine = yield* startEngine(model.path, { maxFailedStarts: 4 })
      const error = yield* Effect.flip(engine.ready)
      assert.deepInclude(error, { reason: "LoadFailed", code: "crashed" })
      assert.match(error.message, /killed by SIGKILL: out of patience \(4 starts in a row failed\)/)
      assert.strictEqual(model.starts().length, 4)
      assert.deepInclude(yield* engine.status, { _tag: "Failed", workerRestarts: 3 })
    }))

  it.live("gives up when a worker that once ran cannot load any more", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel({ fail: { code: "not_found", message: "no such file" }, failFrom: 2 })
      const engine = yield* startEngine(model.path, { maxFailedStarts: 3 })
      yield* generate(engine, [1])
      assert.deepInclude(yield* Effect.flip(generate(engine, [4])), { reason: "WorkerLost" })
      assert.deepInclude(yield* Effect.flip(generate(engine, [1])), { reason: "LoadFailed", code: "not_found" })
      assert.strictEqual(model.starts().length, 4)
    }))

  it.live("gives up when there is no worker program", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path, { worker: "/nowhere/worker.js", maxFailedStarts: 2 })
      const error = yield* Effect.flip(engine.ready)
      assert.deepInclude(error, { reason: "LoadFailed", code: "crashed" })
      assert.include(error.message, "/nowhere/worker.js")
    }))

  it.live("treats a description of the model that cannot be read as a failed start", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel({ ready: { layers: "many" } })).path, { maxFailedStarts: 2 })
      const error = yield* Effect.flip(engine.ready)
      assert.deepInclude(error, { reason: "LoadFailed", code: "crashed" })
      assert.match(error.message, /sent a corrupt frame: the description of the loaded model cannot be read/)
    }))

  it.live("kill -9 fails what runs as lost, and serves the same requests again", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel()
      const engine = yield* startEngine(model.path)
      const waiting = yield* Effect.forEach(Array.from({ length: 8 }), () => {
        const { arrived, listener } = firstToken()
        return Effect.tap(Effect.forkChild(Effect.flip(engine.generate(request([2]), listener))), () => arrived)
      })
      const pid = yield* workerPid(engine)
      process.kill(pid, "SIGKILL")
      for (const fiber of waiting) {
        const error = yield* Fiber.join(fiber)
        assert.deepInclude(error, { reason: "WorkerLost", message: "the engine process was killed by SIGKILL" })
      }
      const again = yield* Effect.forEach(waiting, (_, i) => generate(engine, [1, i]), { concurrency: "unbounded" })
      assert.deepStrictEqual(again.map(({ tokens }) => tokens), waiting.map((_, i) => [1, i]))
      const status = yield* engine.status
      assert.deepInclude(status, { _tag: "Ready", workerRestarts: 1 })
      assert.notStrictEqual(status.workerPid, pid)
      assert.isFalse(isAlive(pid))
    }))

  for (
    const [name, prompt, message] of [
      ["the request kills the worker", [4], /killed by SIGKILL/],
      ["the worker sends what is no frame", [5], /sent a corrupt frame: a packet of \d+ bytes is above the limit/],
      ["the worker throws", [6], /exited with code 1: .*no more ideas$/]
    ] as const
  ) {
    it.live(`${name}: every request is lost, the next one is served`, () =>
      Effect.gen(function*() {
        const model = yield* fakeModel()
        const engine = yield* startEngine(model.path)
        const { arrived, listener } = firstToken()
        const bystander = yield* Effect.forkChild(Effect.flip(engine.generate(request([2]), listener)))
        yield* arrived
        const error = yield* Effect.flip(generate(engine, prompt))
        assert.strictEqual(error.reason, "WorkerLost")
        assert.match(error.message, message)
        assert.strictEqual((yield* Fiber.join(bystander)).reason, "WorkerLost")
        assert.deepStrictEqual((yield* generate(engine, [1, 3])).tokens, [1, 3])
        assert.deepStrictEqual(model.starts().map(isAlive), [false, true])
      }))
  }

  it.live("says what the engine says of one request", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      assert.deepInclude(yield* Effect.flip(generate(engine, [7])), {
        reason: "Rejected",
        code: "rejected",
        message: "the prompt is too long",
        subject: "tokens"
      })
      assert.deepInclude(yield* Effect.flip(generate(engine, [8])), {
        reason: "OutOfMemory",
        code: "out_of_memory",
        message: "no block left"
      })
      assert.deepInclude(yield* engine.status, { _tag: "Ready", workerRestarts: 0 })
    }))

  it.live("cancels what is interrupted", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      const { arrived, count, listener } = firstToken()
      yield* generate(engine, [1])
      const fiber = yield* Effect.forkChild(engine.generate(request([2]), listener))
      yield* arrived
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* generate(engine, [9])).tokens, [2])
      assert.strictEqual(count(), 1)
    }))

  it.live("a listener that throws ends its own request only", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      const other = firstToken()
      const bystander = yield* Effect.forkChild(engine.generate(request([2]), other.listener))
      yield* other.arrived
      const exit = yield* Effect.exit(engine.generate(request([2]), {
        onToken: () => {
          throw new Error("my own fault")
        }
      }))
      assert.isTrue(Exit.hasDies(exit))
      assert.deepStrictEqual((yield* generate(engine, [9])).tokens, [2])
      yield* Fiber.interrupt(bystander)
    }))

  it.live("loses nothing when tokens come faster than they are read", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      const { tokens } = yield* generate(engine, [3], 100_000)
      assert.strictEqual(tokens.length, 100_000)
      assert.isTrue(tokens.every((token, i) => token === i))
    }))

  it.live("leaves the signals of the terminal to its parent", () =>
    Effect.gen(function*() {
      const engine = yield* startEngine((yield* fakeModel()).path)
      yield* engine.ready
      const pid = yield* workerPid(engine)
      for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"] as const) {
        process.kill(pid, signal)
        assert.deepStrictEqual((yield* generate(engine, [1, 4])).tokens, [1, 4])
      }
      assert.deepInclude(yield* engine.status, { workerPid: pid, workerRestarts: 0 })
    }))

  for (
    const [name, script, closes] of [
      ["an idle worker closes its engine", {}, 1],
      ["a worker that does not close is killed", { stuck: true }, 1],
      ["a worker that loads does not hold the server up", { never: true }, 0]
    ] as const
  ) {
    it.live(`the end of the scope is the worker's end: ${name}`, () =>
      Effect.gen(function*() {
        const model = yield* fakeModel(script)
        const scope = yield* Scope.make()
        const engine = yield* Scope.provide(startEngine(model.path, { shutdownGrace: "200 millis" }), scope)
        if (!("never" in script)) yield* engine.ready
        const pid = yield* workerPid(engine)
        const running = yield* Effect.forkChild(Effect.flip(engine.generate(request([2]), firstToken().listener)), {
          startImmediately: true
        })
        yield* Scope.close(scope, Exit.void)
        assert.isFalse(isAlive(pid))
        assert.strictEqual(model.closes(), closes)
        assert.deepInclude(yield* Fiber.join(running), { reason: "WorkerLost" })
        assert.deepInclude(yield* Effect.flip(generate(engine, [1])), { reason: "WorkerLost" })
      }))
  }
})
