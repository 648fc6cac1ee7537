import { Clock, Duration, Effect, Layer, Schedule } from "effect"
import type { EngineError } from "../domain/Errors.ts"
import { Engine } from "./Engine.ts"
import { loadFailed, workerLost } from "./EngineErrors.ts"
import { EngineHost } from "./EngineHost.ts"
import { nativeFailure } from "./NativeModule.ts"
import { type WorkerEnd, type WorkerOptions, WorkerProcess } from "./WorkerProcess.ts"

export interface EngineProcessOptions extends WorkerOptions {
  /** The first wait before a restart; each further one is twice as long. Default 100 ms. */
  readonly restartDelay?: Duration.Input
  /** The longest wait before a restart. Default 10 s. */
  readonly maxRestartDelay?: Duration.Input
  /** A worker that has served this long is restarted at once, and the waits begin anew. Default 1 min. */
  readonly healthyAfter?: Duration.Input
  /** After so many starts in a row that did not get as far as ready, the engine has failed for good. Default 5. */
  readonly maxFailedStarts?: number
  /** How long a worker may take to close before it is killed. Default 3 s. */
  readonly shutdownGrace?: Duration.Input
}

/**
 * The addon in a supervised child process, so that a crash of the native code ends neither the server nor a request that can be sent again.
 * The layer is there at once and loads in the background; the process ends with the layer's scope.
 *
 * When the worker dies, what runs in it fails with `WorkerLost`, and new generations wait for the next worker. A model that cannot be loaded
 * at the first start, or `maxFailedStarts` failed starts in a row, fail the engine for good with `LoadFailed`.
 */
export const layerProcess = (options: EngineProcessOptions): Layer.Layer<Engine> =>
  Layer.effect(
    Engine,
    Effect.gen(function*() {
      const host = new EngineHost()
      yield* Effect.addFinalizer(() => Effect.sync(() => host.failed(workerLost("the engine was closed"))))
      yield* supervise(host, options).pipe(Effect.forkScoped({ startImmediately: true }))
      return host.service
    })
  )

/** How one worker's life went; `servedMs` is undefined when it did not get as far as ready. */
interface Life extends WorkerEnd {
  readonly servedMs: number | undefined
}

/** Starts workers, one after the other, until there is no hope. */
const supervise = (host: EngineHost, options: EngineProcessOptions): Effect.Effect<void> => {
  const maxFailedStarts = options.maxFailedStarts ?? 5
  const healthyMs = Duration.toMillis(options.healthyAfter ?? "1 minute")
  const backoff = Schedule.min([
    Schedule.exponential(options.restartDelay ?? "100 millis"),
    Schedule.spaced(options.maxRestartDelay ?? "10 seconds")
  ])
  let everReady = false
  let failedStarts = 0

  /** Succeeds when the engine has failed for good; fails when there is to be another worker. */
  const attempt = Effect.gen(function*() {
    const { error, refused, servedMs } = yield* life(host, options)
    host.lost(error)
    if (servedMs !== undefined) {
      everReady = true
      failedStarts = 0
      yield* Effect.logWarning(`${error.message}; starting another`)
      return yield* Effect.fail({ healthy: servedMs >= healthyMs })
    }
    failedStarts++
    if (refused && !everReady) return host.failed(error)
    if (failedStarts >= maxFailedStarts) return host.failed(refused ? error : crashLoop(error, failedStarts))
    yield* Effect.logWarning(`${error.message}; trying again`)
    return yield* Effect.fail({ healthy: false })
  })

  return attempt.pipe(
    Effect.retry({ schedule: backoff, while: (lost) => !lost.healthy }),
    Effect.eventually
  )
}

const life = (host: EngineHost, options: EngineProcessOptions): Effect.Effect<Life> =>
  Effect.scoped(Effect.gen(function*() {
    const clock = yield* Clock.Clock
    let readyAt: number | undefined
    const worker = yield* Effect.acquireRelease(
      Effect.try({
        try: () =>
          new WorkerProcess(options, {
            onLoading: (fraction) => host.loading(fraction),
            onReady: (model) => {
              readyAt = clock.currentTimeMillisUnsafe()
              host.opened({ model, dispatcher: worker.dispatcher })
            }
          }),
        catch: (thrown) => workerLost(`the engine process could not be started: ${nativeFailure(thrown).message}`)
      }),
      (worker) => worker.stop(options.shutdownGrace ?? "3 seconds")
    )
    host.starting(worker.pid)
    const end = yield* worker.ended
    return { ...end, servedMs: readyAt === undefined ? undefined : clock.currentTimeMillisUnsafe() - readyAt }
  })).pipe(
    Effect.catch((error) => Effect.succeed({ error, refused: false, servedMs: undefined }))
  )

const crashLoop = (error: EngineError, starts: number): EngineError =>
  loadFailed({ code: "crashed", message: `${error.message} (${starts} starts in a row failed)`, subject: undefined })
