import { Cause, Clock, Deferred, Effect, Exit, type Fiber, type Scope } from "effect"
import type { StreamEncoder } from "../dialect/StreamEncoder.ts"
import { type EngineError, RequestRefused } from "../domain/Errors.ts"
import { type Finish, joinDeltas, type OutputEvent } from "../domain/OutputEvent.ts"
import type { PrefillProgress } from "../domain/Usage.ts"
import type { OutputSink } from "../generation/Generation.ts"
import { Limits, type LimitsValue } from "./Limits.ts"
import type { StreamOutput } from "./StreamOutput.ts"

const dirty: Array<EventStream> = []

const flushAll = () => {
  for (const stream of dirty.splice(0)) stream.flush()
}

interface PendingEvent {
  readonly choice: ChoiceSink
  event: OutputEvent
}

/** Where one choice of a streamed answer goes. */
class ChoiceSink implements OutputSink {
  readonly index: number
  /** Whether the client has some of it. */
  sent = false
  private readonly stream: EventStream
  readonly progress?: (progress: PrefillProgress) => void

  constructor(stream: EventStream, index: number) {
    this.stream = stream
    this.index = index
    if (stream.showsProgress) this.progress = (progress) => stream.progress(progress, index)
  }

  push(event: OutputEvent): void {
    this.stream.push(event, this)
  }

  reset(): boolean {
    return this.stream.reset(this)
  }
}

/**
 * One streamed answer of one or more choices. Output that arrives in one turn of the event loop, an engine step, leaves as one write: text of
 * one kind is joined into one delta. Nothing is written before the first output or `begin`, so an early failure can still be a status.
 */
class EventStream {
  /** Done with the first bytes of the stream, or with the error that came in their place. */
  readonly committed = Deferred.makeUnsafe<void, EngineError | RequestRefused>()
  lastWriteAt: number
  private readonly encoder: StreamEncoder
  private readonly now: () => number
  private readonly output: StreamOutput
  private opened = false
  private ended = false
  private scheduled = false
  private frames = ""
  private pending: Array<PendingEvent> = []
  private outputSent = false
  private begun = false

  constructor(encoder: StreamEncoder, now: () => number, output: StreamOutput) {
    this.encoder = encoder
    this.output = output
    this.now = now
    this.lastWriteAt = now()
  }

  choice(index: number): OutputSink {
    return new ChoiceSink(this, index)
  }

  get showsProgress(): boolean {
    return this.encoder.progress !== undefined
  }

  push(event: OutputEvent, choice: ChoiceSink): void {
    const last = this.pending.at(-1)
    const joined = last === undefined || last.choice !== choice || last.event._tag === "Finish" || event._tag === "Finish"
      ? undefined
      : joinDeltas(last.event, event)
    if (last !== undefined && joined !== undefined) last.event = joined
    else this.pending.push({ choice, event })
    if (this.scheduled) return
    this.scheduled = true
    if (dirty.push(this) === 1) setImmediate(flushAll)
  }

  reset(choice: ChoiceSink): boolean {
    if (choice.sent) return false
    this.pending = this.pending.filter((pending) => pending.choice !== choice)
    if (!this.outputSent) this.encoder.reset?.()
    return true
  }

  progress(progress: PrefillProgress, choice: number): void {
    if (this.ended || this.encoder.progress === undefined) return
    this.frames += this.encoder.progress(progress, choice)
    this.begin()
  }

  /** Begins the stream before there is output. */
  begin(): void {
    this.open()
    // The status and headers leave with the first bytes, so there must be some, also where the dialect says nothing at the start.
    if (this.frames === "" && !this.begun) this.frames = this.encoder.keepAlive()
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
  finish(exit: Exit.Exit<ReadonlyArray<Finish>, EngineError>): void {
    if (Exit.isSuccess(exit)) this.complete(exit.value)
    else if (Cause.hasInterruptsOnly(exit.cause)) this.output.cut()
    else this.fail(failureOf(exit.cause))
    this.output.end()
    this.ended = true
  }

  get done(): boolean {
    return this.ended
  }

  private complete(finishes: ReadonlyArray<Finish>): void {
    this.encodePending()
    this.frames += this.encoder.end?.(finishes) ?? ""
    this.flush()
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
    const { pending } = this
    if (pending.length === 0) return
    this.pending = []
    for (const { choice, event } of pending) {
      const frames = this.encoder.event(event, choice.index)
      if (frames !== "") choice.sent = true
      this.frames += frames
    }
  }

  private write(): void {
    const { frames } = this
    if (this.output.closed || this.ended || frames === "") return
    this.frames = ""
    this.lastWriteAt = this.now()
    this.output.write(frames)
    this.begun = true
  }
}

const failureOf = (cause: Cause.Cause<EngineError>): EngineError | RequestRefused => {
  for (const reason of cause.reasons) if (reason._tag === "Fail") return reason.error
  return new RequestRefused({ reason: "Defect", message: "Server error: the request failed inside the server." })
}

/** Comments while there is no output, and the end for a client that does not read. */
const watch = (stream: EventStream, output: StreamOutput, limits: LimitsValue, now: () => number, onSlowReader: () => void) =>
  Effect.gen(function*() {
    while (!output.closed) {
      const unread = output.unreadMs()
      if (unread >= limits.slowReaderMs) {
        onSlowReader()
        output.cut(new Error("the client does not read"))
        return
      }
      const silent = now() - stream.lastWriteAt
      if (silent >= limits.keepAliveMs && unread === 0) stream.keepAlive()
      const untilComment = stream.done || unread > 0 ? limits.keepAliveMs : limits.keepAliveMs - (now() - stream.lastWriteAt)
      yield* Effect.sleep(Math.max(1, Math.min(untilComment, limits.slowReaderMs - unread)))
    }
  })

export interface StreamOptions {
  readonly encoder: StreamEncoder
  /** Runs every choice, each into its own sink. */
  readonly run: (sink: (choice: number) => OutputSink) => Effect.Effect<ReadonlyArray<Finish>, EngineError>
  readonly output: StreamOutput
  readonly onSlowReader: () => void
}

/**
 * Runs a generation into an output, and is ready when there is output or after `headMs`; the result is the fiber of the generation. An earlier
 * failure is this effect's own. The generation and its watch die with the scope.
 */
export const begin = (
  options: StreamOptions
): Effect.Effect<Fiber.Fiber<ReadonlyArray<Finish>, EngineError>, EngineError | RequestRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const limits = yield* Limits
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const { output } = options
    const stream = new EventStream(options.encoder, now, output)
    const running = yield* options.run((choice) => stream.choice(choice)).pipe(
      Effect.onExit((exit) => Effect.sync(() => stream.finish(exit))),
      Effect.forkScoped
    )
    yield* Deferred.await(stream.committed).pipe(
      Effect.timeoutOrElse({ duration: limits.headMs, orElse: () => Effect.sync(() => stream.begin()) })
    )
    yield* Effect.forkScoped(watch(stream, output, limits, now, options.onSlowReader))
    return running
  })
