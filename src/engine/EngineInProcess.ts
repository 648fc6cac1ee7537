import { Effect, Layer } from "effect"
import { Dispatcher } from "./Dispatcher.ts"
import { Engine } from "./Engine.ts"
import { loadFailed, workerLost } from "./EngineErrors.ts"
import { EngineHost } from "./EngineHost.ts"
import { FrameReader } from "./Frames.ts"
import type { NativeEngine, NativeLoadOptions } from "./Native.ts"
import { loadNative, nativeFailure } from "./NativeModule.ts"

export interface EngineInProcessOptions {
  readonly load: NativeLoadOptions
  /** Path of the native addon; the default is the one that the build made, or MASHBOX_ADDON. */
  readonly addon?: string
}

/**
 * The addon in this process: nothing between the caller and the engine, and a crash of the one is a crash of the other. The layer is there
 * at once and loads in the background; the engine closes with the layer's scope.
 */
export const layerInProcess = (options: EngineInProcessOptions): Layer.Layer<Engine> =>
  Layer.effect(
    Engine,
    Effect.gen(function*() {
      const host = new EngineHost()
      host.starting(undefined)
      yield* Effect.addFinalizer(() => Effect.sync(() => host.failed(workerLost("the engine was closed"))))
      yield* run(host, options).pipe(
        Effect.catch((error) => Effect.sync(() => host.failed(error))),
        Effect.forkScoped({ startImmediately: true })
      )
      return host.service
    })
  )

const run = Effect.fnUntraced(function*(host: EngineHost, options: EngineInProcessOptions) {
  const native = yield* Effect.tryPromise({ try: () => loadNative(options.addon), catch: (thrown) => loadFailed(nativeFailure(thrown)) })
  let engine: NativeEngine | undefined
  const dispatcher = new Dispatcher({
    submit: (request) => engine?.submit(request),
    cancel: (id) => engine?.cancel(id)
  })
  const frames = new FrameReader(dispatcher)
  const onFrame = (frame: Uint8Array) => {
    try {
      frames.push(frame)
    } catch (error) {
      host.failed(workerLost(`the engine sent a corrupt frame: ${nativeFailure(error).message}`))
    }
  }
  engine = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () => native.load(options.load, (fraction) => host.loading(fraction), onFrame),
      catch: (thrown) => loadFailed(nativeFailure(thrown))
    }),
    (engine) => Effect.sync(() => engine.close())
  )
  host.opened({ model: engine.model, dispatcher })
  return yield* Effect.never
})
