import { Deferred, Effect } from "effect"
import type { EngineError } from "../domain/Errors.ts"
import type { Dispatcher } from "./Dispatcher.ts"
import type { Engine, EngineListener, EngineRequest, EngineResult, EngineStatus } from "./Engine.ts"
import type { NativeModelInfo } from "./Native.ts"

/** One engine that has loaded its model. */
export interface Session {
  readonly model: NativeModelInfo
  readonly dispatcher: Dispatcher
}

/**
 * What every layer of the `Engine` service has in common: it waits for a session, runs generations in it, and keeps them waiting while
 * there is none. The layer says what happens to its sessions.
 */
export class EngineHost {
  private session: Session | undefined
  private ready = Deferred.makeUnsafe<Session, EngineError>()
  private failure: EngineError | undefined
  private progress = 0
  private pid: number | undefined
  private starts = 0

  /** An engine is being started. */
  starting(pid: number | undefined): void {
    this.pid = pid
    this.progress = 0
    this.starts++
  }

  /** `fraction` of the model has been loaded. */
  loading(fraction: number): void {
    this.progress = Math.min(fraction, 1)
  }

  opened(session: Session): void {
    this.session = session
    Deferred.doneUnsafe(this.ready, Effect.succeed(session))
  }

  /** The session is gone: its requests fail, later ones wait for the next session. */
  lost(error: EngineError): void {
    const session = this.session
    this.pid = undefined
    this.progress = 0
    if (session === undefined) return
    this.session = undefined
    this.ready = Deferred.makeUnsafe()
    session.dispatcher.close(error)
  }

  /** There will be no further session. */
  failed(error: EngineError): void {
    this.lost(error)
    this.failure = error
    Deferred.doneUnsafe(this.ready, Effect.fail(error))
  }

  private get restarts(): number {
    return Math.max(this.starts - 1, 0)
  }

  private status(): EngineStatus {
    if (this.session !== undefined) {
      const { dispatcher, model } = this.session
      return { _tag: "Ready", model, cacheUse: dispatcher.cacheUse, workerPid: this.pid, workerRestarts: this.restarts }
    }
    if (this.failure !== undefined) {
      return { _tag: "Failed", error: this.failure, workerPid: undefined, workerRestarts: this.restarts }
    }
    return { _tag: "Loading", progress: this.progress, workerPid: this.pid, workerRestarts: this.restarts }
  }

  private readonly open: Effect.Effect<Session, EngineError> = Effect.suspend(() =>
    this.session !== undefined ? Effect.succeed(this.session) : Effect.flatMap(Deferred.await(this.ready), () => this.open)
  )

  readonly service: Engine["Service"] = {
    status: Effect.sync(() => this.status()),
    ready: Effect.map(Effect.suspend(() => this.open), (session) => session.model),
    generate: (request: EngineRequest, listener: EngineListener): Effect.Effect<EngineResult, EngineError> =>
      Effect.flatMap(this.open, (session) => session.dispatcher.generate(request, listener))
  }
}
