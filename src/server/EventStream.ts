import { Cause, Clock, Deferred, Effect, Exit, type Scope } from "effect"
import { Readable } from "node:stream"
import type { StreamEncoder } from "../dialect/StreamEncoder.ts"
import { type EngineError, RequestRefused } from "../domain/Errors.ts"
import { type Finish, joinDeltas, type OutputEvent } from "../domain/OutputEvent.ts"
import type { OutputSink } from "../generation/Generation.ts"
import { Limits, type LimitsValue } from "./Limits.ts"
import type { SocketWriter } from "./SocketWriter.ts"

/** Bytes that may wait in the server for a client that does not read. */
const bufferBytes = 64 * 1024

const dirty: Array<EventStream> = []

const flushAll = () => {
  for (const stream of dirty.splice(0)) stream.flush()
}

/**
 * One streamed answer. Output that arrives in one turn of the event loop, an engine step, leaves as one write: text of one kind is joined
 * into one delta. Nothing is written before the first output or `open`, so an early failure can still be a status.
 */
class EventStream implements OutputSink {
  readonly body = new Readable({ highWaterMark: bufferBytes, read() {} })
  /** Done with the first bytes of the stream, or with the error that came in their place. */
  readonly committed = Deferred.makeUnsafe<void, EngineError | RequestRefused>()
  lastWriteAt: number
  private readonly encoder: StreamEncoder
  private readonly now: () => number
  private readonly socket: SocketWriter | undefined
  private opened = false
  private outputSent = false
  private ended = false
  private scheduled = false
  private frames = ""
  private pending: OutputEvent | undefined
  private begun = false
  private unreadBytes = 0
  private blockedSince: number | undefined

  constructor(encoder: StreamEncoder, now: () => number, socket: SocketWriter | undefined) {
    this.encoder = encoder
    this.socket = socket
    this.now = now
    this.lastWriteAt = now()
    // Destroying the body with an error would otherwise be an uncaught exception.
    this.body.on("error", () => {})
  }

  push(event: OutputEvent): void {
    const { pending } = this
    const joined = pending === undefined || pending._tag === "Finish" || event._tag === "Finish" ? undefined : joinDeltas(pending, event)
    if (joined === undefined) this.encodePending()
    this.pending = joined ?? event
    if (this.scheduled) return
    this.scheduled = true
    if (dirty.push(this) === 1) setImmediate(flushAll)
  }

  reset(): boolean {
    if (this.outputSent) return false
    this.pending = undefined
    this.frames = ""
    this.encoder.reset?.()
    return true
  }

  /** Begins the stream before there is output. */
  begin(): void {
    this.open()
    this.write()
  }

  private open(): void {
    if (this.opened) return
    this.opened = true
    this.frames = this.encoder.start() + this.frames
    Deferred.doneUnsafe(this.committed, Effect.void)
  }

  flush(): void {
    this.scheduled = false
    this.encodePending()
    if (this.frames === "") return
    this.outputSent = true
    this.open()
    this.write()
  }

  keepAlive(): void {
    if (this.ended) return
    this.frames += this.encoder.keepAlive()
    this.write()
  }

  /** Ends the stream as its generation ended. */
  finish(exit: Exit.Exit<Finish, EngineError>): void {
    if (Exit.isSuccess(exit)) this.flush()
    else if (Cause.hasInterruptsOnly(exit.cause)) this.body.destroy()
    else this.fail(failureOf(exit.cause))
    if (!this.body.destroyed) this.body.push(null)
    this.ended = true
  }

  /** Milliseconds that the client has left output unread. */
  unreadMs(): number {
    this.watchReader()
    return this.blockedSince === undefined ? 0 : this.now() - this.blockedSince
  }

  get done(): boolean {
    return this.ended
  }

  private fail(error: EngineError | RequestRefused): void {
    if (!this.opened) {
      Deferred.doneUnsafe(this.committed, Effect.fail(error))
      return
    }
    this.encodePending()
    this.frames += this.encoder.error(error)
    this.write()
  }

  private encodePending(): void {
    const event = this.pending
    if (event === undefined) return
    this.frames += this.encoder.event(event)
    this.pending = undefined
  }

  private write(): void {
    if (this.body.destroyed || this.ended) return
    const { frames } = this
    this.frames = ""
    this.lastWriteAt = this.now()
    this.watchReader()
    if (!this.begun || this.body.readableLength > 0 || this.socket?.write(frames) !== true) this.body.push(Buffer.from(frames))
    this.begun = true
    this.unreadBytes = this.waitingBytes()
  }

  private waitingBytes(): number {
    return this.body.readableLength + (this.socket?.buffered ?? 0)
  }

  private watchReader(): void {
    const waiting = this.waitingBytes()
    if (waiting === 0) this.blockedSince = undefined
    else if (waiting < this.unreadBytes || this.blockedSince === undefined) this.blockedSince = this.now()
    this.unreadBytes = waiting
  }
}

const failureOf = (cause: Cause.Cause<EngineError>): EngineError | RequestRefused => {
  for (const reason of cause.reasons) if (reason._tag === "Fail") return reason.error
  return new RequestRefused({ reason: "Defect", message: "Server error: the request failed inside the server." })
}

/** Comments while there is no output, and the end for a client that does not read. */
const watch = (stream: EventStream, limits: LimitsValue, now: () => number, onSlowReader: () => void) =>
  Effect.gen(function*() {
    while (!stream.body.destroyed) {
      const unread = stream.unreadMs()
      if (unread >= limits.slowReaderMs) {
        onSlowReader()
        stream.body.destroy(new Error("the client does not read"))
        return
      }
      const silent = now() - stream.lastWriteAt
      if (silent >= limits.keepAliveMs && unread === 0) stream.keepAlive()
      const untilComment = stream.done || unread > 0 ? limits.keepAliveMs : limits.keepAliveMs - (now() - stream.lastWriteAt)
      yield* Effect.sleep(Math.max(1, Math.min(untilComment, limits.slowReaderMs - unread)))
    }
  })

/**
 * Runs a generation into the body of a streamed answer, which is ready when there is output or after `headMs`. An earlier failure is this
 * effect's own. The generation and its watch die with the scope.
 */
export const respond = (options: {
  readonly encoder: StreamEncoder
  readonly run: (sink: OutputSink) => Effect.Effect<Finish, EngineError>
  readonly onSlowReader: () => void
  readonly socket: SocketWriter | undefined
}): Effect.Effect<Readable, EngineError | RequestRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const limits = yield* Limits
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const stream = new EventStream(options.encoder, now, options.socket)
    yield* options.run(stream).pipe(
      Effect.onExit((exit) => Effect.sync(() => stream.finish(exit))),
      Effect.forkScoped
    )
    yield* Deferred.await(stream.committed).pipe(
      Effect.timeoutOrElse({ duration: limits.headMs, orElse: () => Effect.sync(() => stream.begin()) })
    )
    yield* Effect.forkScoped(watch(stream, limits, now, options.onSlowReader))
    return stream.body
  })
