import { Clock, Context, Duration, Effect, FiberSet, Layer } from "effect"
import type { EngineError } from "../domain/Errors.ts"
import { Dispatcher } from "./Dispatcher.ts"
import { Engine } from "./Engine.ts"
import { workerLost } from "./EngineErrors.ts"
import { EngineHost } from "./EngineHost.ts"
import { FrameReader } from "./Frames.ts"
import type { NativeModelInfo, NativeSubmit } from "./Native.ts"
import { type ScriptedAnswer, ScriptedScheduler } from "./ScriptedScheduler.ts"

export interface Script {
  /** The answer to the `index`-th request, counted from 0 in the order of arrival. */
  readonly answer: (request: NativeSubmit, index: number) => ScriptedAnswer
  /** How loading goes: "ready" (default) at once, or after a while, "never", or an error. */
  readonly load?: "ready" | "never" | { readonly readyAfter: Duration.Input } | { readonly error: EngineError }
  /** Wait before the engine is ready again after a lost worker. Default 0. */
  readonly restartDelay?: Duration.Input
  /** Replaces fields of the model's description. `slots` is also how many requests run at a time. */
  readonly model?: Partial<NativeModelInfo>
}

/** What reached a scripted engine. */
export class ScriptedEngine extends Context.Service<ScriptedEngine, {
  /** Every request, in the order of arrival. */
  readonly requests: ReadonlyArray<NativeSubmit>
  /** Ids of the requests that were cancelled, in that order. */
  readonly cancelled: ReadonlyArray<number>
  /** Requests that run now. */
  readonly running: () => number
  /** Kills the engine as a fault of a request would. */
  readonly loseWorker: Effect.Effect<void>
}>()("mashbox/engine/ScriptedEngine") {}

/**
 * An engine without a model, for tests and for measuring everything around the engine: it answers as the script says, through the same frames
 * as a real one, a step giving one token to every running request. Waits follow the Effect clock.
 */
export const layerScripted = (script: Script): Layer.Layer<Engine | ScriptedEngine> =>
  Layer.effectContext(Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    const host = new EngineHost()
    const requests: Array<NativeSubmit> = []
    const cancelled: Array<number> = []
    let current: ScriptedScheduler | undefined

    const start = (readyAfter: Duration.Input): Effect.Effect<void> =>
      Effect.sync(() => {
        host.starting(undefined)
        fork(Effect.delay(Effect.sync(open), readyAfter))
      })

    const lose = () => {
      current?.close()
      current = undefined
      host.lost(workerLost("the engine process was killed by SIGKILL"))
      fork(start(script.restartDelay ?? Duration.zero))
    }

    const model: NativeModelInfo = { ...defaultModel, ...script.model }

    const open = () => {
      const dispatcher = new Dispatcher({
        submit: (request) => {
          requests.push(request)
          scheduler.submit(request, script.answer(request, requests.length - 1))
        },
        cancel: (id) => {
          cancelled.push(id)
          scheduler.cancel(id)
        }
      })
      const frames = new FrameReader(dispatcher)
      const scheduler = new ScriptedScheduler({ slots: model.slots, clock, fork, onFrame: (frame) => frames.push(frame), onFatal: lose })
      current = scheduler
      host.opened({ model, dispatcher })
    }

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        current?.close()
        host.failed(workerLost("the engine was closed"))
      })
    )
    const load = script.load ?? "ready"
    if (load === "ready") {
      host.starting(undefined)
      open()
    } else if (load === "never") host.starting(undefined)
    else if ("error" in load) host.failed(load.error)
    else yield* start(load.readyAfter)

    return Context.make(Engine, host.service).pipe(
      Context.add(ScriptedEngine, { requests, cancelled, running: () => current?.running ?? 0, loseWorker: Effect.sync(lose) })
    )
  }))

const defaultModel: NativeModelInfo = {
  architecture: "scripted",
  vocabularySize: 1 << 16,
  layers: 0,
  contextLength: 1 << 20,
  trainedContextLength: 1 << 20,
  slots: 64,
  isa: "scalar",
  threads: 1,
  memory: { weights: 0, kvCache: 0, scratch: 0 },
  experts: null
}
