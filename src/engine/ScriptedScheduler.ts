import { type Clock, Duration, Effect } from "effect"
import { type DoneReason, FrameWriter, type NativeErrorCode } from "./Frames.ts"
import type { EngineLogprobs } from "./Logprobs.ts"
import type { NativeSubmit } from "./Native.ts"
import { PassageFollower } from "./PassageFollower.ts"

/** What the engine does for one request. */
export interface ScriptedAnswer {
  /** The output; cut at `maxTokens` of the request. May be endless. */
  readonly tokens: Iterable<number>
  /** The log probabilities of token number `index`; by default −(index + 1) / 2, and the token alone as its own alternative. */
  readonly logprobs?: (token: number, index: number) => EngineLogprobs
  /** How the output ends where the tokens do. Default "stop". */
  readonly reason?: "stop" | "length"
  /** Prompt tokens that count as served from the cache. Default 0. */
  readonly cachedTokens?: number
  /** Wait before the first token: a time, or until an effect is done. */
  readonly delay?: ScriptedWait
  /** Wait between two tokens. Without `delay` and `interval` a token comes with every step of the engine, as fast as it can. */
  readonly interval?: ScriptedWait
  readonly fault?: ScriptedFault
}

export type ScriptedWait = Duration.Input | Effect.Effect<void>

/** Happens in place of the token after `afterTokens` tokens, and takes the place of the end. */
export type ScriptedFault =
  | { readonly _tag: "WorkerLost"; readonly afterTokens: number }
  | { readonly _tag: "Failed"; readonly afterTokens: number; readonly code: NativeErrorCode; readonly message: string }
  /** Nothing more comes. */
  | { readonly _tag: "Hang"; readonly afterTokens: number }

export interface ScriptedSchedulerOptions {
  /** Requests that run at a time; the others wait. */
  readonly slots: number
  readonly clock: Clock.Clock
  readonly fork: (effect: Effect.Effect<void>) => unknown
  readonly onFrame: (frame: Uint8Array) => void
  /** The engine "crashed"; nothing more comes. */
  readonly onFatal: () => void
}

interface Run {
  readonly request: NativeSubmit
  readonly answer: ScriptedAnswer
  readonly tokens: Iterator<number>
  readonly passage: PassageFollower
  readonly submittedAt: number
  startedAt: number
  firstTokenAt: number
  generated: number
  /** Gets a token with every step, or when its own fiber says so, or no more: it hangs or has ended. */
  pace: "stepped" | "timed" | "none"
}

/** Stands in for the native scheduler: runs scripted answers side by side and reports them in step frames. */
export class ScriptedScheduler {
  private readonly options: ScriptedSchedulerOptions
  private readonly writer = new FrameWriter()
  private readonly active = new Map<number, Run>()
  private readonly waiting: Array<Run> = []
  private nextStep: NodeJS.Immediate | undefined
  private closed = false

  constructor(options: ScriptedSchedulerOptions) {
    this.options = options
  }

  get running(): number {
    return this.active.size
  }

  submit(request: NativeSubmit, answer: ScriptedAnswer): void {
    const now = this.now()
    this.waiting.push({
      request,
      answer,
      tokens: answer.tokens[Symbol.iterator](),
      passage: new PassageFollower(request.limit),
      submittedAt: now,
      startedAt: now,
      firstTokenAt: now,
      generated: 0,
      pace: answer.delay === undefined && answer.interval === undefined ? "stepped" : "timed"
    })
    this.admit()
  }

  /** The answer to a cancellation comes with the next step, as a real engine's does. */
  cancel(id: number): void {
    const position = this.waiting.findIndex((run) => run.request.id === id)
    const run = this.active.get(id) ?? this.waiting[position]
    if (run === undefined) return
    if (position >= 0) this.waiting.splice(position, 1)
    this.end(run, "cancelled")
    this.schedule()
  }

  close(): void {
    this.closed = true
    clearImmediate(this.nextStep)
  }

  private now(): number {
    return this.options.clock.currentTimeMillisUnsafe()
  }

  private admit(): void {
    while (this.active.size < this.options.slots) {
      const run = this.waiting.shift()
      if (run === undefined) return
      run.startedAt = this.now()
      this.active.set(run.request.id, run)
      if (run.pace === "timed") this.options.fork(this.timed(run))
      else this.schedule()
    }
  }

  private schedule(): void {
    if (this.nextStep === undefined && !this.closed) this.nextStep = setImmediate(() => this.step())
  }

  private step(): void {
    this.nextStep = undefined
    let more = false
    for (const run of this.active.values()) {
      if (run.pace !== "stepped") continue
      this.advance(run)
      if (this.closed) return
      more = true
    }
    this.flush()
    if (more) this.schedule()
  }

  private timed(run: Run): Effect.Effect<void> {
    const { delay, interval } = run.answer
    return Effect.gen({ self: this }, function*() {
      if (delay !== undefined) yield* wait(delay)
      if (interval === undefined) {
        if (run.pace === "timed") run.pace = "stepped"
        return this.schedule()
      }
      while (this.advanceAlone(run)) yield* wait(interval)
    })
  }

  /** @returns whether there can be another token. */
  private advanceAlone(run: Run): boolean {
    if (!this.isLive(run)) return false
    this.advance(run)
    this.flush()
    return this.isLive(run)
  }

  private isLive(run: Run): boolean {
    return !this.closed && run.pace !== "none"
  }

  private advance(run: Run): void {
    const { answer, request } = run
    if (run.generated === 0) this.writer.progress(request.id, request.tokens.length, request.tokens.length)
    if (answer.fault?.afterTokens === run.generated) return this.fail(run, answer.fault)
    const forced = run.passage.forced
    const next = forced === undefined ? run.tokens.next() : { done: false, value: forced }
    if (next.done === true) return this.end(run, answer.reason ?? "stop")
    if (forced === undefined && run.generated >= (request.minTokens ?? 0) && request.stopTokens.includes(next.value)) {
      this.writer.stopToken(request.id, next.value)
      return this.end(run, "stop")
    }
    if (run.generated === 0) run.firstTokenAt = this.now()
    run.generated++
    run.passage.take(next.value)
    this.writer.token(request.id, next.value, scores(run, next.value))
    if (run.generated >= request.maxTokens) this.end(run, "length")
  }

  private fail(run: Run, fault: ScriptedFault): void {
    run.pace = "none"
    if (fault._tag === "Hang") return
    if (fault._tag === "Failed") {
      this.writer.failed(run.request.id, fault.code, fault.message)
      this.release(run)
      return
    }
    this.flush()
    this.options.onFatal()
  }

  private end(run: Run, reason: DoneReason): void {
    const now = this.now()
    this.writer.done(run.request.id, reason, {
      promptTokens: run.request.tokens.length,
      cachedTokens: run.answer.cachedTokens ?? 0,
      generatedTokens: run.generated,
      queueMs: run.startedAt - run.submittedAt,
      promptMs: run.generated === 0 ? now - run.startedAt : run.firstTokenAt - run.startedAt,
      generationMs: run.generated === 0 ? 0 : now - run.firstTokenAt
    })
    this.release(run)
  }

  private release(run: Run): void {
    run.pace = "none"
    this.active.delete(run.request.id)
    this.admit()
  }

  private flush(): void {
    if (!this.writer.empty && !this.closed) this.options.onFrame(this.writer.take())
  }
}

const wait = (how: ScriptedWait): Effect.Effect<void> => Effect.isEffect(how) ? how : Effect.sleep(how)

/** What the request asked to know about the token that was counted last. */
const scores = ({ answer, generated, request }: Run, token: number): EngineLogprobs | undefined => {
  if (request.topLogprobs === undefined) return undefined
  const { logprob, top } = answer.logprobs?.(token, generated - 1) ?? { logprob: -generated / 2, top: [{ token, logprob: -generated / 2 }] }
  return { logprob, top: top.slice(0, request.topLogprobs) }
}
