import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import { Worker } from "node:worker_threads"
import { GrammarThread, startThread } from "../../../src/grammar/GrammarThread.ts"
import { encodeGrammar } from "../../../src/grammar/IrEncoder.ts"
import { type CallGrammarOptions, compileCalls } from "../../../src/grammar/tools/CallGrammar.ts"

const tokens = new Map([["<tool_call>", 7]])

const options = (schema: unknown): Omit<CallGrammarOptions, "token"> => ({
  syntax: "hermes",
  sample: "",
  tools: [{ name: "f", parameters: schema, strict: true, field: "tools.0.parameters" }],
  required: true,
  parallel: false
})

const work = (schema: unknown) => JSON.stringify(options(schema))

const reference = (schema: unknown) =>
  Result.map(compileCalls({ ...options(schema), token: (text) => tokens.get(text) }), (grammar) => Array.from(encodeGrammar(grammar)))

/** A thread that ends on the words "end" and "throw", and echoes the rest. */
const scripted = () =>
  new Worker(
    `const { parentPort } = require("node:worker_threads")
     parentPort.on("message", (text) => {
       if (text === "end") process.exit(1)
       if (text === "throw") throw new Error("a fault")
       parentPort.postMessage({ bytes: new TextEncoder().encode(text) })
     })`,
    { eval: true }
  )

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

describe("the thread that compiles grammars", () => {
  it.live("compiles what this thread would, and refuses by the same path", () =>
    Effect.gen(function*() {
      const thread = yield* GrammarThread.make(startThread(() => tokens))
      const schemas = [
        {
          type: "object",
          properties: { a: { type: "string", pattern: "^(a+)+$" }, b: { $ref: "#/$defs/c" } },
          $defs: { c: { type: "null" } }
        },
        { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { $ref: "#/$defs/a" } } },
        { type: "object", properties: { a: { type: "string", pattern: "(" } } }
      ]
      for (const schema of schemas) {
        const got = yield* Effect.result(thread.compile(work(schema), "a"))
        const expected = reference(schema)
        if (Result.isSuccess(expected)) assert.deepStrictEqual(Array.from(Result.getOrThrow(got)), expected.success)
        else if (Result.isSuccess(got)) assert.fail("not refused")
        else {
          const { message, path, reason } = expected.failure
          assert.deepInclude(got.failure, { _tag: "GrammarError", message, path, reason })
          assert.match(path, /^tools\.0\.parameters\./)
        }
      }
    }))

  it.live("is not there before it is needed, and one thread does all", () =>
    Effect.gen(function*() {
      let started = 0
      const thread = yield* GrammarThread.make(() => {
        started++
        return scripted()
      })
      assert.strictEqual(started, 0)
      const all = yield* Effect.forEach(["a", "b", "c"], (name) => thread.compile(name, name), { concurrency: "unbounded" })
      assert.deepStrictEqual(all.map(text), ["a", "b", "c"])
      assert.strictEqual(started, 1)
    }))

  it.live("fails only the work it ends on", () =>
    Effect.gen(function*() {
      const thread = yield* GrammarThread.make(scripted)
      const results = yield* Effect.forEach(["a", "end", "b", "throw", "c"], (name) => Effect.result(thread.compile(name, "x")), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        results.map((result) =>
          Result.isSuccess(result) ? text(result.success) : result.failure._tag === "GrammarError" ? result.failure.reason : ""
        ),
        ["a", "TooLarge", "b", "TooLarge", "c"]
      )
    }))

  it.live("answers at once that too much waits, by tenant and in all, and a place that is left is free again", () =>
    Effect.gen(function*() {
      let start = () => {}
      const held = new Promise<void>((resolve) => start = resolve)
      // Answers nothing before it is told to.
      const worker = scripted()
      const post = worker.postMessage.bind(worker)
      worker.postMessage = (message, transfer) => void held.then(() => post(message, transfer))
      const thread = yield* GrammarThread.make(() => worker)
      const fork = (name: string, tenant: string) =>
        Effect.forkChild(Effect.result(thread.compile(name, tenant)), { startImmediately: true })
      const fibers = []
      for (let at = 0; at < 17; at++) fibers.push(yield* fork(`a${at}`, "a"))
      const scopeOf = (tenant: string) =>
        Effect.map(
          Effect.result(thread.compile("more", tenant)),
          (result) =>
            Result.isFailure(result) && result.failure._tag === "Overloaded" ? [result.failure.scope, result.failure.waitingFor] : []
        )
      assert.deepStrictEqual(yield* scopeOf("a"), ["tenant", "grammar"])
      for (const tenant of ["b", "c", "d"]) for (let at = 0; at < 16; at++) fibers.push(yield* fork(`${tenant}${at}`, tenant))
      assert.deepStrictEqual(yield* scopeOf("e"), ["server", "grammar"])
      const last = fibers.pop()
      if (last === undefined) return assert.fail("nothing started")
      yield* Fiber.interrupt(last)
      fibers.push(yield* fork("e0", "e"))
      assert.deepStrictEqual(yield* scopeOf("e"), ["server", "grammar"])
      start()
      const done = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(done.filter(Result.isSuccess).length, 65)
    }))

  it.live("does what several wait for once", () =>
    Effect.gen(function*() {
      const worker = scripted()
      const asked: Array<string> = []
      const post = worker.postMessage.bind(worker)
      worker.postMessage = (message: string, transfer) => {
        asked.push(message)
        post(message, transfer)
      }
      const thread = yield* GrammarThread.make(() => worker)
      const all = yield* Effect.forEach(["x", "same", "y", "same", "same"], (name, at) => thread.compile(name, `${at % 2}`), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(all.map(text), ["x", "same", "y", "same", "same"])
      assert.deepStrictEqual(asked.toSorted(), ["same", "x", "y"])
    }))

  it.live("gives tenants turns, and forgets what was interrupted", () =>
    Effect.gen(function*() {
      const thread = yield* GrammarThread.make(scripted)
      const done: Array<string> = []
      const start = (name: string, tenant: string) =>
        Effect.forkChild(Effect.tap(thread.compile(name, tenant), () => Effect.sync(() => done.push(name))), { startImmediately: true })
      const fibers = []
      for (const [name, tenant] of [["a1", "a"], ["a2", "a"], ["a3", "a"], ["b1", "b"]] as const) fibers.push(yield* start(name, tenant))
      const [first, second, ...rest] = fibers
      if (first === undefined || second === undefined) return assert.fail("nothing started")
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(second)
      yield* Effect.forEach(rest, Fiber.join)
      assert.deepStrictEqual(done, ["b1", "a3"])
      assert.strictEqual(text(yield* thread.compile("after", "a")), "after")
    }))
})
