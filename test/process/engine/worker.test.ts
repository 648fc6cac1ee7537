import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { text } from "node:stream/consumers"
import { greedy } from "../../../src/domain/Sampling.ts"
import { encodeLoad, encodeSubmit } from "../../../src/engine/Commands.ts"
import { workerPath } from "../../../src/engine/EnginePaths.ts"
import { fakeAddon, fakeModel, isAlive, load, untilGone } from "./harness.ts"

const start = (
  stdio: ReadonlyArray<"pipe" | "ignore"> = ["pipe", "ignore", "pipe", "pipe"]
): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [workerPath], { stdio: [...stdio], env: { ...process.env, MASHBOX_ADDON: fakeAddon } })),
    (worker) => Effect.sync(() => worker.kill("SIGKILL"))
  )

const send = (worker: ChildProcess, ...commands: ReadonlyArray<Uint8Array>) => {
  for (const command of commands) worker.stdin?.write(command)
}

const firstFrame = (worker: ChildProcess): Effect.Effect<void> =>
  Effect.callback((resume) => {
    worker.stdio[3]?.once("data", () => resume(Effect.void))
  })

const submit = (first: number, maxTokens: number): Uint8Array =>
  encodeSubmit({
    ...greedy,
    id: 1,
    tokens: Int32Array.from([first]),
    stopTokens: new Int32Array(0),
    maxTokens
  })

/** Exit code, signal, and what was written on stderr. */
const end = (worker: ChildProcess): Effect.Effect<readonly [code: number | null, signal: string | null, words: string]> =>
  Effect.promise(async () => {
    const words = worker.stderr === null ? "" : text(worker.stderr)
    const [code, signal] = await once(worker, "close")
    return [code, signal, await words]
  })

describe("worker", () => {
  it.live("ends with stdin, its engine closed", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel()
      const worker = yield* start()
      send(worker, encodeLoad(load(model.path)), submit(1, 1))
      yield* firstFrame(worker)
      worker.stdio[3]?.on("data", () => {})
      worker.stdin?.end()
      assert.deepStrictEqual(yield* end(worker), [0, null, ""])
      assert.strictEqual(model.closes(), 1)
    }))

  it.live("ends with stdin even while it loads", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel({ never: true })
      const worker = yield* start()
      send(worker, encodeLoad(load(model.path)))
      yield* firstFrame(worker)
      worker.stdin?.end()
      assert.deepStrictEqual(yield* end(worker), [null, "SIGKILL", ""])
    }))

  it.live("ends when its parent is killed", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel()
      const parent = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn(process.execPath, [join(import.meta.dirname, "parent.ts"), model.path, fakeAddon], { stdio: ["ignore", "pipe", "inherit"] })
        ),
        (parent) => Effect.sync(() => parent.kill("SIGKILL"))
      )
      const [line] = yield* Effect.promise(() => once(createInterface(parent.stdout), "line"))
      const pid = Number(line)
      assert.isTrue(isAlive(pid))
      parent.kill("SIGKILL")
      yield* untilGone(pid)
      assert.strictEqual(model.closes(), 1)
    }))

  it.live("says why it cannot load, and fails", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel({ fail: { code: "truncated", message: "the file ends early" } })
      const worker = yield* start()
      send(worker, encodeLoad(load(model.path)))
      const output = worker.stdio[3]
      assert.exists(output)
      const frames = text(output as NodeJS.ReadableStream)
      assert.deepStrictEqual(yield* end(worker), [1, null, ""])
      assert.include(yield* Effect.promise(() => frames), "{\"code\":\"truncated\",\"message\":\"the file ends early\"}")
    }))

  it.live("fails on what is no command", () =>
    Effect.gen(function*() {
      const worker = yield* start()
      send(worker, new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"))
      assert.deepStrictEqual(yield* end(worker), [1, null, "a packet of 542393671 bytes is above the limit of 67108864\n"])
    }))

  it.live("fails rather than to fill its memory when nobody reads", () =>
    Effect.gen(function*() {
      const model = yield* fakeModel()
      const worker = yield* start()
      send(worker, encodeLoad(load(model.path)))
      yield* firstFrame(worker)
      worker.stdio[3]?.removeAllListeners("data")
      const output = worker.stdio[3]
      if (output !== null && output !== undefined && "pause" in output) output.pause()
      send(worker, submit(10, 80))
      const [code] = yield* Effect.promise(() => once(worker, "exit"))
      assert.strictEqual(code, 1)
    }))

  it.live("cannot be started by hand", () =>
    Effect.gen(function*() {
      const worker = yield* start(["pipe", "ignore", "pipe"])
      const [code, , words] = yield* end(worker)
      assert.strictEqual(code, 1)
      assert.strictEqual(words, "this program is started by mashbox, not by hand\n")
    }))
})
