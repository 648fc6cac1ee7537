import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EngineError } from "../../../src/domain/Errors.ts"
import { greedy } from "../../../src/domain/Sampling.ts"
import { Engine, type EngineListener, type EngineRequest, type EngineResult } from "../../../src/engine/Engine.ts"
import { type EngineProcessOptions, layerProcess } from "../../../src/engine/EngineProcess.ts"
import type { NativeLoadOptions } from "../../../src/engine/Native.ts"

export type EngineService = Context.Service.Shape<typeof Engine>

export const fakeAddon = join(import.meta.dirname, "fakeAddon.mjs")

/** A "model" for the fake addon in a folder of its own; see fakeAddon.mjs for what it may say. */
export const fakeModel = (script: object = {}): Effect.Effect<FakeModel, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = join(mkdtempSync(join(tmpdir(), "mashbox-engine-")), "model.json")
      writeFileSync(path, JSON.stringify(script))
      return { path, starts: () => lines(`${path}.starts`).map(Number), closes: () => lines(`${path}.closed`).length }
    }),
    ({ path }) => Effect.sync(() => rmSync(join(path, ".."), { recursive: true }))
  )

export interface FakeModel {
  readonly path: string
  /** The process id of each start. */
  readonly starts: () => ReadonlyArray<number>
  readonly closes: () => number
}

const lines = (path: string): ReadonlyArray<string> =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").filter((line) => line !== "") : []

export const load = (path: string): NativeLoadOptions => ({ path, threads: 1, slots: 8, contextLength: 0, kvType: "f16", batchTokens: 64 })

/** A supervised worker with the fake addon. */
export const startEngine = (path: string, options: Partial<EngineProcessOptions> = {}): Effect.Effect<EngineService, never, Scope.Scope> =>
  Effect.map(
    Layer.build(layerProcess({ load: load(path), addon: fakeAddon, restartDelay: "1 millis", ...options })),
    (context) => Context.get(context, Engine)
  )

export const request = (tokens: ReadonlyArray<number>, maxTokens = 16): EngineRequest => ({
  tokens: Int32Array.from(tokens),
  maxTokens,
  stopTokens: new Int32Array(0),
  sampling: greedy
})

export interface Collected {
  readonly tokens: ReadonlyArray<number>
  readonly result: EngineResult
}

export const generate = (
  engine: EngineService,
  tokens: ReadonlyArray<number>,
  maxTokens?: number
): Effect.Effect<Collected, EngineError> =>
  Effect.suspend(() => {
    const heard: Array<number> = []
    return Effect.map(
      engine.generate(request(tokens, maxTokens), { onToken: (token) => heard.push(token) }),
      (result) => ({ tokens: heard, result })
    )
  })

/** A listener and an effect that waits for its first token. */
export const firstToken = (): {
  readonly listener: EngineListener
  readonly arrived: Effect.Effect<void>
  readonly count: () => number
} => {
  const first = Deferred.makeUnsafe<void>()
  let count = 0
  return {
    listener: {
      onToken: () => {
        count++
        Deferred.doneUnsafe(first, Effect.void)
      }
    },
    arrived: Deferred.await(first),
    count: () => count
  }
}

export const workerPid = (engine: EngineService): Effect.Effect<number> =>
  Effect.map(engine.status, ({ workerPid }) => {
    if (workerPid === undefined) throw new Error("there is no worker")
    return workerPid
  })

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A process that has ended but whose new parent, the container's first process, does not care counts as gone. */
const isAbandoned = (pid: number): boolean => {
  try {
    return /^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

/** Waits until a process that is no child of this one is gone; the test's own time limit bounds it. */
export const untilGone = (pid: number): Effect.Effect<void> =>
  Effect.sync(() => isAlive(pid) && !isAbandoned(pid)).pipe(
    Effect.delay("5 millis"),
    Effect.repeat({ while: (alive) => alive }),
    Effect.asVoid
  )
