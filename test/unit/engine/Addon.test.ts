import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { addonPath, projectRoot } from "../../../src/engine/EnginePaths.ts"
import { type DoneReason, FrameReader } from "../../../src/engine/Frames.ts"
import type { EngineLogprobs } from "../../../src/engine/Logprobs.ts"
import type { NativeEngine, NativeLoadOptions, NativeSubmit } from "../../../src/engine/Native.ts"
import { loadNative, nativeFailure } from "../../../src/engine/NativeModule.ts"

const fixtures = join(projectRoot, "test", "fixtures")
const demo = join(projectRoot, "models", "mashbox-demo.gguf")

interface Golden {
  readonly end_ids: ReadonlyArray<number>
  readonly exact: ReadonlyArray<
    { readonly name: string; readonly prompt_ids: ReadonlyArray<number>; readonly output_ids: ReadonlyArray<number> }
  >
}
const golden: Golden = JSON.parse(readFileSync(join(fixtures, "mashbox-demo.golden.json"), "utf8"))

const options: NativeLoadOptions = { path: demo, threads: 2, slots: 8, contextLength: 2304, kvType: "f32", batchTokens: 256 }

const request: NativeSubmit = {
  id: 1,
  tokens: Int32Array.of(1, 2, 3, 4),
  maxTokens: 16,
  stopTokens: new Int32Array(),
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repetitionWindow: 256,
  seed: 0,
  logitBias: []
}

const seeded = (id: number): NativeSubmit => ({
  ...request,
  id,
  tokens: Int32Array.from({ length: 5 + id * 13 }, (_, i) => (id * 97 + i * i * 3 + i) % 4000),
  maxTokens: 40,
  temperature: 0.9,
  topK: 50,
  topP: 0.95,
  minP: 0.01,
  repetitionPenalty: 1.1,
  seed: 2 ** 52 + id,
  logitBias: [[7, -100], [9, 1.5]]
})

interface Outcome {
  readonly tokens: ReadonlyArray<number>
  readonly end: DoneReason | string
  readonly promptTokens: number
  readonly generatedTokens: number
}

/** An engine whose frames are gathered per request. */
class Session {
  readonly engine: NativeEngine
  frames = 0
  private readonly tokens = new Map<number, Array<number>>()
  /** Of every request that asked for them, in the order of its tokens. */
  readonly logprobs: Array<EngineLogprobs> = []
  readonly stopTokens: Array<number> = []
  /** Used and in all, after every frame. */
  readonly blocks: Array<ReadonlyArray<number>> = []
  private readonly ended = new Map<number, (outcome: Outcome) => void>()

  private constructor(engine: NativeEngine) {
    this.engine = engine
  }

  static async load(overrides: Partial<NativeLoadOptions> = {}, progress: Array<number> = []): Promise<Session> {
    const native = await loadNative()
    const late: { session?: Session } = {}
    const reader = new FrameReader({
      token: (id, token, logprobs) => {
        late.session?.tokens.get(id)?.push(token)
        if (logprobs !== undefined) late.session?.logprobs.push(logprobs)
      },
      stopToken: (_, token) => late.session?.stopTokens.push(token),
      progress: () => {},
      done: (id, end, counts) => late.session?.end(id, { end, ...counts }),
      failed: (id, code) => late.session?.end(id, { end: code, promptTokens: 0, generatedTokens: 0 }),
      blocks: (...use) => late.session?.blocks.push(use)
    })
    const engine = await native.load({ ...options, ...overrides }, (fraction) => progress.push(fraction), (frame) => {
      if (late.session !== undefined) late.session.frames++
      reader.push(frame)
    })
    return late.session = new Session(engine)
  }

  run(submit: NativeSubmit): Promise<Outcome> {
    this.tokens.set(submit.id, [])
    const outcome = new Promise<Outcome>((resolve) => this.ended.set(submit.id, resolve))
    this.engine.submit(submit)
    return outcome
  }

  private end(id: number, outcome: Omit<Outcome, "tokens">): void {
    this.ended.get(id)?.({ ...outcome, tokens: this.tokens.get(id) ?? [] })
  }
}

const withSession = async (use: (session: Session) => unknown, overrides: Partial<NativeLoadOptions> = {}): Promise<void> => {
  const session = await Session.load(overrides)
  try {
    await use(session)
  } finally {
    session.engine.close()
  }
}

const thrownBy = async (run: () => unknown) => {
  try {
    await run()
  } catch (thrown) {
    return nativeFailure(thrown)
  }
  return assert.fail("nothing was thrown")
}

/** Calls a method with what its type forbids. */
const hostile = (target: object, method: string, args: ReadonlyArray<unknown>): unknown =>
  Reflect.apply(Reflect.get(target, method), target, args)

/** Runs a script in a Node of its own; `load` and `options` are there. */
const node = (script: string, ...flags: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [...flags, "--eval", prelude + script], { encoding: "utf8", timeout: 60_000 })

const prelude = `const native = require(${JSON.stringify(addonPath())})
const options = ${JSON.stringify(options)}
const request = { ...${JSON.stringify(request)}, tokens: Int32Array.of(1, 2, 3), stopTokens: new Int32Array(), maxTokens: 2000 };
`

const built = existsSync(addonPath())
const suite = built ? "the native addon" : "the native addon (skipped: it has not been built)"

describe.skipIf(!built)(suite, () => {
  it("describes the machine", async () => {
    const info = (await loadNative()).info()
    assert.match(info.version, /^\d+\.\d+\.\d+$/)
    assert.include(["scalar", "avx2", "avx512"], info.isa)
    assert.isAtLeast(info.threads, 1)
    assert.strictEqual(info.cuda.devices.length === 0, info.cuda.reason !== "")
  })

  it("loads with rising progress and describes the model", async () => {
    const progress: Array<number> = []
    const { engine } = await Session.load({}, progress)
    try {
      assert.strictEqual(progress.at(-1), 1)
      assert.deepStrictEqual(progress, progress.toSorted((a, b) => a - b))
      const { memory, ...model } = engine.model
      assert.deepStrictEqual(model, {
        architecture: "qwen3",
        vocabularySize: 4096,
        layers: 6,
        contextLength: 2304,
        trainedContextLength: 131072,
        slots: 8,
        isa: (await loadNative()).info().isa,
        threads: 2,
        experts: null
      })
      assert.isAbove(memory.weights, 1e6)
      assert.isAbove(memory.kvCache, 1e6)
      assert.isAbove(memory.scratch, 1e5)
      assert.strictEqual(engine.model, engine.model)
      assert.isFrozen(engine.model)
      assert.deepStrictEqual(engine.stats(), {
        running: 0,
        waiting: 0,
        freeBlocks: 576,
        totalBlocks: 576,
        freeWindowBlocks: 0,
        windowBlocks: 0,
        steps: 0
      })
    } finally {
      engine.close()
    }
  })

  it("says how the experts of a mixture are multiplied", async () => {
    const { engine } = await Session.load({ path: join(fixtures, "golden/qwen2moe/model-q8_0.gguf"), contextLength: 64 })
    try {
      const scalar = engine.model.isa === "scalar"
      assert.deepStrictEqual(engine.model.experts, {
        kernelSites: scalar ? 0 : 6,
        exactSites: scalar ? 6 : 0,
        exactReasons: scalar ? ["the scalar tier has no vector kernels"] : []
      })
      assert.isFrozen(engine.model.experts)
    } finally {
      engine.close()
    }
  })

  it("writes the recorded greedy answers of the bundled model, all of them at once", () =>
    withSession(async (session) => {
      const outcomes = await Promise.all(golden.exact.map((answer, id) =>
        session.run({
          ...request,
          id,
          tokens: Int32Array.from(answer.prompt_ids),
          stopTokens: Int32Array.from(golden.end_ids),
          maxTokens: 96
        })
      ))
      for (const [id, answer] of golden.exact.entries()) {
        const outcome = outcomes[id]
        assert.strictEqual(outcome?.end, "stop", answer.name)
        assert.deepStrictEqual(outcome?.tokens, answer.output_ids.slice(0, -1), answer.name)
        assert.strictEqual(outcome?.promptTokens, answer.prompt_ids.length)
        assert.strictEqual(outcome?.generatedTokens, answer.output_ids.length - 1)
      }
      const { freeBlocks, totalBlocks, running, waiting } = session.engine.stats()
      assert.deepStrictEqual([running, waiting, freeBlocks], [0, 0, totalBlocks])
      assert.deepStrictEqual(session.blocks.at(-1), [0, totalBlocks, 0, 0])
      assert.isTrue(session.blocks.some(([used = 0]) => used >= golden.exact.length))
    }))

  it("gives log probabilities with the tokens they belong to, and changes none; names the stop token", () =>
    withSession(async (session) => {
      const [answer] = golden.exact
      assert.isDefined(answer)
      const own = { ...request, tokens: Int32Array.from(answer.prompt_ids), maxTokens: 96 }
      const stopTokens = Int32Array.from(golden.end_ids)
      const outcome = await session.run({ ...own, stopTokens, topLogprobs: 20 })
      assert.deepStrictEqual(outcome.tokens, answer.output_ids.slice(0, -1))
      assert.deepStrictEqual(session.stopTokens, answer.output_ids.slice(-1))
      assert.strictEqual(session.logprobs.length, outcome.tokens.length)
      for (const [index, { logprob, top }] of session.logprobs.entries()) {
        assert.deepStrictEqual(top[0], { token: outcome.tokens[index] ?? -1, logprob }, "greedy takes the likeliest")
        assert.strictEqual(new Set(top.map(({ token }) => token)).size, 20)
        assert.deepStrictEqual(top.map((own) => own.logprob), top.map((own) => own.logprob).toSorted((a, b) => b - a))
        const mass = top.reduce((sum, own) => sum + Math.exp(own.logprob), 0)
        assert.isTrue(mass > 0.5 && mass < 1.00001, String(mass))
      }
      const first = session.logprobs.splice(0)
      await session.run({
        ...own,
        id: 2,
        stopTokens,
        temperature: 2,
        topK: 5,
        repetitionPenalty: 1.5,
        seed: 3,
        topLogprobs: 20,
        maxTokens: 1
      })
      assert.deepStrictEqual(session.logprobs[0]?.top, first[0]?.top, "the model's own, whatever shapes the draw")
      const longer = await session.run({ ...own, id: 3, stopTokens, minTokens: 96 })
      assert.strictEqual(longer.tokens.length, 96)
      assert.isTrue(longer.tokens.every((token) => !golden.end_ids.includes(token)))
    }))

  it("gives 8 concurrent seeded requests the tokens that each gets alone, also after a restart", async () => {
    const ids = [1, 2, 3, 4, 5, 6, 7, 8]
    const alone: Array<Outcome> = []
    await withSession(async (session) => {
      for (const id of ids) alone.push(await session.run(seeded(id)))
    }, { slots: 1 })
    await withSession(async (session) => {
      const together = await Promise.all(ids.map((id) => session.run(seeded(id))))
      assert.deepStrictEqual(together.map((outcome) => outcome.tokens), alone.map((outcome) => outcome.tokens))
    }, { batchTokens: 40 })
    assert.isTrue(alone.every((outcome) => outcome.tokens.length === 40 && !outcome.tokens.includes(7)))
  })

  it("cancels running and waiting requests and frees their blocks", () =>
    withSession(async (session) => {
      const running = session.run({ ...request, id: 1, maxTokens: 2000 })
      const waiting = session.run({ ...request, id: 2 })
      session.engine.cancel(2)
      session.engine.cancel(1)
      session.engine.cancel(99)
      assert.strictEqual((await waiting).end, "cancelled")
      assert.strictEqual((await running).end, "cancelled")
      const stats = session.engine.stats()
      assert.deepStrictEqual([stats.running, stats.waiting, stats.freeBlocks], [0, 0, stats.totalBlocks])
    }, { slots: 1 }))

  it("keeps every frame while JavaScript is busy, and delivers them together", () =>
    withSession(async (session) => {
      const outcome = session.run({ ...request, maxTokens: 300 })
      while (session.engine.stats().running + session.engine.stats().waiting > 0);
      assert.strictEqual(session.frames, 0)
      assert.lengthOf((await outcome).tokens, 300)
      assert.strictEqual(session.frames, 300)
    }))

  it("refuses load options that it cannot use, by name", async () => {
    const native = await loadNative()
    const refused: ReadonlyArray<readonly [field: string, values: ReadonlyArray<unknown>]> = [
      ["path", [undefined, 5, "", "a\0b", {}]],
      ["threads", [undefined, -1, 1.5, "2", NaN, Infinity, 1e9]],
      ["slots", [undefined, 0, -1, 2.5, null, 1e6]],
      ["contextLength", [undefined, -1, 0.5, 2 ** 32, "0", 1n]],
      ["kvType", [undefined, "f8", "", 16, Symbol("f16")]],
      ["batchTokens", [undefined, 0, 7, 1e9, NaN]]
    ]
    for (const [field, values] of refused) {
      for (const value of values) {
        const failure = await thrownBy(() => hostile(native, "load", [{ ...options, [field]: value }, () => {}, () => {}]))
        assert.deepInclude(failure, { code: "invalid", subject: field }, `${field}: ${typeof value} ${JSON.stringify(failure)}`)
        assert.match(failure.message, new RegExp(`^${field}: expected `))
      }
    }
    for (const args of [[], [undefined], [null], ["path"], [5]]) {
      assert.deepInclude(await thrownBy(() => hostile(native, "load", args)), { code: "invalid", subject: "options" })
    }
    assert.deepInclude(await thrownBy(() => hostile(native, "load", [options])), { code: "invalid", subject: "onProgress" })
    assert.deepInclude(await thrownBy(() => hostile(native, "load", [options, () => {}, {}])), { code: "invalid", subject: "onFrame" })
    const getter = {
      ...options,
      get slots(): number {
        throw new Error("from the getter")
      }
    }
    assert.strictEqual((await thrownBy(() => hostile(native, "load", [getter, () => {}, () => {}]))).message, "from the getter")
  })

  it("refuses requests that it cannot run, by name", () =>
    withSession(async ({ engine }) => {
      const detached = Int32Array.of(1, 2)
      structuredClone(detached.buffer, { transfer: [detached.buffer] })
      const numbers = [undefined, "1", NaN, Infinity, -Infinity, {}, 1n, null]
      const refused: ReadonlyArray<readonly [field: string, code: string, values: ReadonlyArray<unknown>]> = [
        ["id", "invalid", [...numbers, -1, 0.5, 2 ** 32]],
        ["tokens", "invalid", [undefined, [1, 2], new Float32Array(2), new Uint32Array(2), new ArrayBuffer(8), { length: 2 }]],
        ["tokens", "rejected", [
          new Int32Array(),
          detached,
          Int32Array.of(1, -1),
          Int32Array.of(4096),
          new Int32Array(2304),
          new Int32Array(1e7)
        ]],
        ["maxTokens", "invalid", [...numbers, 0, -1, 1.5]],
        ["stopTokens", "invalid", [undefined, [1]]],
        ["minTokens", "invalid", [...numbers.slice(1), -1, 0.5]],
        ["topLogprobs", "invalid", [...numbers.slice(1), -1, 0.5, 21]],
        ["temperature", "invalid", [...numbers, -0.1]],
        ["topK", "invalid", [...numbers, -1, 0.5]],
        ["topP", "invalid", [...numbers, -0.1, 1.1]],
        ["minP", "invalid", [...numbers, -0.1, 1.1]],
        ["repetitionPenalty", "invalid", [...numbers, 0, -1]],
        ["frequencyPenalty", "invalid", [...numbers, 1e300]],
        ["presencePenalty", "invalid", numbers],
        ["repetitionWindow", "invalid", [...numbers, -1, 0.5]],
        ["seed", "invalid", [...numbers, -1, 0.5, 2 ** 53]],
        ["logitBias", "invalid", [
          undefined,
          {},
          [1],
          [[1]],
          [[1, 2, 3]],
          [["1", 2]],
          [[1, NaN]],
          [[-1, 2]],
          [[0.5, 2]],
          Object.assign([], { length: 2 ** 32 - 1 })
        ]],
        ["logitBias", "rejected", [[[4096, 1]], [[2 ** 31 - 1, 1]]]]
      ]
      for (const [field, code, values] of refused) {
        for (const value of values) {
          const failure = await thrownBy(() => hostile(engine, "submit", [{ ...request, [field]: value }]))
          assert.deepInclude(failure, { code, subject: field }, `${field}: ${typeof value} ${JSON.stringify(failure)}`)
        }
      }
      for (const args of [[], [undefined], [null], [7]]) {
        assert.deepInclude(await thrownBy(() => hostile(engine, "submit", args)), { code: "invalid", subject: "request" })
      }
      for (const args of [[], ["1"], [-1], [2 ** 32]]) {
        assert.deepInclude(await thrownBy(() => hostile(engine, "cancel", args)), { code: "invalid", subject: "id" })
      }
      engine.submit(request)
      assert.deepInclude(await thrownBy(() => engine.submit(request)), { code: "rejected", subject: "id" })
    }))

  it("refuses foreign receivers and engines without a load", () =>
    withSession(async ({ engine }) => {
      for (const receiver of [{}, null, 5, new Proxy(engine, {})]) {
        assert.throws(() => Reflect.apply(engine.submit, receiver, [request]), TypeError)
        assert.throws(() => Reflect.apply(engine.close, receiver, []), TypeError)
      }
      assert.throws(() => Reflect.construct(engine.constructor, []), TypeError)
    }))

  it("tells every broken file's class of error", async () => {
    const native = await loadNative()
    const folder = join(fixtures, "golden", "broken")
    const index: { readonly cases: ReadonlyArray<{ readonly file: string; readonly expect: ReadonlyArray<string> }> } = JSON.parse(
      readFileSync(join(folder, "index.json"), "utf8")
    )
    assert.isAbove(index.cases.length, 100)
    for (const { expect, file } of index.cases) {
      const load = native.load({ ...options, path: join(folder, file), slots: 1, contextLength: 0 }, () => {}, () => {})
      const result = await load.then((engine) => (engine.close(), { code: "ok", message: "" }), nativeFailure)
      const code = result.code === "not_found" ? "invalid" : result.code
      assert.include(expect, code, `${file}: ${result.message}`)
      assert.notInclude(result.message, "\n")
    }
    assert.deepInclude(await thrownBy(() => native.load({ ...options, path: "/nowhere.gguf" }, () => {}, () => {})), { code: "not_found" })
  })

  it("closes twice, from inside a callback, and then refuses work", async () => {
    const native = await loadNative()
    const engine = await new Promise<NativeEngine>((resolve, reject) => {
      let opened: NativeEngine | undefined
      let frames = 0
      native.load(options, () => {}, () => {
        opened?.close()
        if (++frames > 1) reject(new Error("a frame after close"))
        else if (opened !== undefined) setImmediate(resolve, opened)
      }).then((engine) => {
        opened = engine
        for (const id of [1, 2, 3]) engine.submit({ ...request, id, maxTokens: 1000 })
      }, reject)
    })
    engine.close()
    assert.deepInclude(await thrownBy(() => engine.submit(request)), { code: "rejected", message: "the engine is closed" })
    assert.deepInclude(await thrownBy(() => engine.stats()), { code: "rejected" })
    engine.cancel(1)
    assert.strictEqual(engine.model.layers, 6)
  })

  it("a getter that closes the engine while its request is read", async () => {
    const { engine } = await Session.load()
    const closing = {
      ...request,
      get seed() {
        engine.close()
        return 1
      }
    }
    assert.deepInclude(await thrownBy(() => engine.submit(closing)), { code: "rejected", message: "the engine is closed" })
  })

  it("keeps the process alive while an engine is open, even unreachable, and lets it end after close", () => {
    const { status, stdout, stderr } = node(
      `
      native.load(options, () => {}, () => {}).then(() => {})
      gc(); setTimeout(() => { gc(); console.log("alive") }, 300).unref()
      setTimeout(() => process.exit(3), 600).unref()`,
      "--expose-gc"
    )
    assert.deepStrictEqual([status, stdout.trim(), stderr], [3, "alive", ""])
    const closed = node(
      `native.load(options, () => {}, () => {}).then((engine) => { engine.submit(request); engine.close(); engine.close() })`
    )
    assert.deepStrictEqual([closed.status, closed.stderr], [0, ""])
  })

  it("survives process.exit while it loads and while it generates", () => {
    const loading = node(`native.load(options, () => {}, () => {}); setImmediate(() => process.exit(5))`)
    assert.deepStrictEqual([loading.status, loading.signal, loading.stderr], [5, null, ""])
    const running = node(`native.load(options, () => {}, () => process.exit(6)).then((engine) => engine.submit(request))`)
    assert.deepStrictEqual([running.status, running.signal, running.stderr], [6, null, ""])
  })

  it("what a listener throws is an uncaught exception, and later frames still come", () => {
    const { status, stdout } = node(`
      let frames = 0, caught = 0, engine
      process.on("uncaughtException", () => { caught++; if (frames === 5) { console.log(caught); engine.close() } })
      native.load(options, () => {}, () => { frames++; throw new Error("listener") }).then((loaded) => { engine = loaded; loaded.submit({ ...request, maxTokens: 5 }) })`)
    assert.deepStrictEqual([status, stdout.trim()], [0, "5"])
  })

  it("runs in worker threads, several times, and survives their termination", async () => {
    const script = `${prelude}
      const { parentPort } = require("node:worker_threads")
      native.load(options, () => {}, () => parentPort.postMessage("frame")).then((engine) => {
        for (let id = 0; id < 8; id++) engine.submit({ ...request, id })
      })`
    for (let round = 0; round < 3; round++) {
      const workers = [new Worker(script, { eval: true }), new Worker(script, { eval: true })]
      await Promise.all(workers.map((worker) =>
        new Promise((resolve, reject) => {
          worker.once("message", () => resolve(worker.terminate()))
          worker.once("error", reject)
        })
      ))
    }
    const loading = new Worker(`${prelude} native.load(options, () => {}, () => {})`, { eval: true })
    await new Promise((resolve) => loading.once("online", resolve))
    await loading.terminate()
  })
})
