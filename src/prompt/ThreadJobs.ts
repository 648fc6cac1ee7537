import { Effect } from "effect"
import type { Worker } from "node:worker_threads"
import { type FromThread, type Parcel, parcels, type ToThread, type Work } from "./PromptThread.ts"
import { noReasoning, type ReasoningState } from "./Reasoning.ts"

/** Prompts in the thread at a time, and those of one tenant: each takes memory of several times its size. */
const most = 4
const mostOfTenant = 2

/** A prompt during which the thread ends this often, the last time with no other beside it, is given up. */
const attempts = 2

/** Milliseconds that a turn of the event loop is spent on sending. */
const sendMs = 2

export interface ThreadResult {
  readonly tokens: Int32Array
  readonly reasoning: ReasoningState
  readonly text: string
}

type Outcome = ThreadResult | { readonly refused: string }

class Job {
  failures = 0
  readonly texts: Array<string> = []
  readonly id: number
  readonly work: Work
  readonly end: (outcome: Effect.Effect<Outcome>) => void

  constructor(id: number, work: Work, end: Job["end"]) {
    this.id = id
    this.work = work
    this.end = end
  }
}

/** The jobs of one thread, which is there while there are jobs, and stays for the next ones. */
export class ThreadJobs {
  readonly #start: () => Worker
  #waiting: Array<Job> = []
  /** Jobs during which the thread ended: they are done one by one, so that only the one to blame fails. */
  readonly #suspects: Array<Job> = []
  readonly #active = new Map<number, Job>()
  #sending: Array<{ readonly job: Job; readonly parcels: Iterator<Parcel> }> = []
  #turn: NodeJS.Immediate | undefined
  #thread: Worker | undefined
  #nextId = 0
  #closed = false

  constructor(start: () => Worker) {
    this.#start = start
  }

  run(work: Work): Effect.Effect<Outcome> {
    return Effect.callback((resume) => {
      const job = new Job(this.#nextId++, work, resume)
      this.#waiting.push(job)
      this.#next()
      return Effect.sync(() => this.#withdraw(job))
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    clearImmediate(this.#turn)
    await this.#thread?.terminate()
  }

  #withdraw(job: Job): void {
    this.#waiting = this.#waiting.filter((other) => other !== job)
    const suspect = this.#suspects.indexOf(job)
    if (suspect >= 0) this.#suspects.splice(suspect, 1)
    if (!this.#active.delete(job.id)) return
    this.#sending = this.#sending.filter((other) => other.job !== job)
    this.#post({ job: job.id, cancel: true })
    this.#next()
  }

  #next(): void {
    if (this.#closed) return
    const suspect = this.#suspects[0]
    if (suspect !== undefined) {
      if (this.#active.size > 0) return
      this.#suspects.shift()
      return this.#begin(suspect)
    }
    // A job that died beside others is alone with the thread.
    if (Array.from(this.#active.values()).some((job) => job.failures > 0)) return
    while (this.#active.size < most) {
      const at = this.#waiting.findIndex(({ work }) => this.#activeOf(work.tenant) < mostOfTenant)
      const job = this.#waiting[at]
      if (job === undefined) break
      this.#waiting.splice(at, 1)
      this.#begin(job)
    }
    if (this.#active.size === 0) this.#thread?.unref()
  }

  #activeOf(tenant: string): number {
    return Array.from(this.#active.values()).filter(({ work }) => work.tenant === tenant).length
  }

  #begin(job: Job): void {
    this.#active.set(job.id, job)
    const thread = this.#thread ??= this.#listen(this.#start())
    thread.ref()
    this.#sending.push({ job, parcels: parcels(job.work) })
    this.#send()
  }

  /** Sends what fits a short turn, job by job. */
  #send(): void {
    if (this.#turn !== undefined) return
    const end = performance.now() + sendMs
    do {
      const next = this.#sending[0]
      if (next === undefined) return
      const parcel = next.parcels.next()
      if (parcel.done === true) this.#sending.shift()
      else this.#post({ job: next.job.id, ...parcel.value })
    } while (performance.now() < end)
    this.#turn = setImmediate(() => {
      this.#turn = undefined
      this.#send()
    })
  }

  #post(message: ToThread): void {
    this.#thread?.postMessage(message, [])
  }

  #listen(thread: Worker): Worker {
    let cause: unknown
    thread.on("message", (message: FromThread) => {
      const job = this.#active.get(message.job)
      if (job === undefined) return
      if ("text" in message) {
        job.texts.push(message.text)
        if (message.rest) return
      }
      this.#active.delete(job.id)
      job.end(Effect.succeed(
        "refused" in message ? message : {
          tokens: new Int32Array(),
          reasoning: noReasoning,
          ...message,
          text: job.texts.reduce((text, piece) => text + piece, "")
        }
      ))
      this.#next()
    })
    thread.on("error", (error) => {
      cause = error
    })
    thread.on("exit", () => {
      this.#thread = undefined
      this.#sending = []
      for (const job of this.#active.values()) {
        job.texts.length = 0
        if (++job.failures < attempts) this.#suspects.push(job)
        else job.end(Effect.die(new Error("the prompt thread ended twice on one prompt", { cause })))
      }
      this.#active.clear()
      this.#next()
    })
    return thread
  }
}
