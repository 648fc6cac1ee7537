import { Effect, type Scope } from "effect"
import { basename, dirname, join } from "node:path"
import { Worker } from "node:worker_threads"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { pack } from "./PackedVocabulary.ts"

/** Old-generation limit of the thread; a text that needs more ends the thread, not the process. */
const heapMib = 1024

/** A batch ends with the text that reaches this many characters, so that long prompts take turns. */
const batchCharacters = 32 * 1024

/** A batch that ends the thread this often is given up. */
const attempts = 2

/** Encodes texts in another thread, in the order of calls. Interrupting the effect takes its waiting texts back. */
export interface LongEncoder {
  readonly encode: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Int32Array>>
}

/** Starts a thread whose protocol is that of `encoderThread.ts`. */
export type StartThread = () => Worker

/** The thread is started with the first text, again after it died, and ends with the scope. */
export const make = (start: StartThread): Effect.Effect<LongEncoder, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(Effect.sync(() => new ThreadQueue(start)), (queue) => Effect.promise(() => queue.close())),
    (queue) => ({
      encode: (texts) => Effect.map(Effect.forEach(batches(texts), (batch) => run(queue, batch)), (results) => results.flat())
    })
  )

/** The thread for a vocabulary. */
export const startThread = (vocabulary: Vocabulary): StartThread => () =>
  new Worker(entryPath(), {
    workerData: pack(vocabulary),
    name: "mashbox-encoder",
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMib }
  })

/** The thread's program: a source beside a source, `dist/encoder.js` for a bundle (whose shared code lies in `dist/chunks`). */
const entryPath = (): string => {
  const folder = dirname(import.meta.filename)
  if (import.meta.filename.endsWith(".ts")) return join(folder, "encoderThread.ts")
  return join(basename(folder) === "chunks" ? dirname(folder) : folder, "encoder.js")
}

const batches = (texts: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const result: Array<Array<string>> = []
  let room = 0
  for (const text of texts) {
    const last = result.at(-1)
    if (last === undefined || room <= 0) {
      result.push([text])
      room = batchCharacters
    } else last.push(text)
    room -= text.length
  }
  return result
}

const run = (queue: ThreadQueue, texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Int32Array>> =>
  Effect.callback((resume) => {
    const job: Job = {
      texts,
      failures: 0,
      succeed: (ids) => resume(Effect.succeed(ids)),
      fail: (cause) => resume(Effect.die(new Error("the encoder thread ended twice on one text", { cause })))
    }
    queue.submit(job)
    return Effect.sync(() => queue.withdraw(job))
  })

interface Job {
  readonly texts: ReadonlyArray<string>
  failures: number
  readonly succeed: (ids: ReadonlyArray<Int32Array>) => void
  readonly fail: (cause: unknown) => void
}

class ThreadQueue {
  readonly #start: StartThread
  readonly #waiting: Array<Job> = []
  #active: Job | undefined
  #thread: Worker | undefined
  #closed = false

  constructor(start: StartThread) {
    this.#start = start
  }

  submit(job: Job): void {
    this.#waiting.push(job)
    this.#next()
  }

  /** What the thread already works on runs to its end, unheard. */
  withdraw(job: Job): void {
    const at = this.#waiting.indexOf(job)
    if (at >= 0) this.#waiting.splice(at, 1)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#thread?.terminate()
  }

  #next(): void {
    if (this.#active !== undefined || this.#closed) return
    const job = this.#waiting.shift()
    if (job === undefined) {
      this.#thread?.unref()
      return
    }
    this.#active = job
    const thread = this.#thread ??= this.#listen(this.#start())
    thread.ref()
    thread.postMessage(job.texts, [])
  }

  #listen(thread: Worker): Worker {
    let cause: unknown
    thread.on("message", (ids: ReadonlyArray<Int32Array>) => {
      const job = this.#active
      this.#active = undefined
      job?.succeed(ids)
      this.#next()
    })
    thread.on("error", (error) => {
      cause = error
    })
    thread.on("exit", () => {
      const job = this.#active
      this.#active = undefined
      this.#thread = undefined
      if (job !== undefined && ++job.failures < attempts) this.#waiting.unshift(job)
      else job?.fail(cause)
      this.#next()
    })
    return thread
  }
}
