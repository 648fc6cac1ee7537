import { Effect, type Scope } from "effect"
import { Worker } from "node:worker_threads"
import { Overloaded } from "../domain/Errors.ts"
import { programPath } from "../ProgramPath.ts"
import { GrammarError, type Reason } from "./GrammarError.ts"

/** Old-generation limit of the thread; a grammar that needs more ends the thread, not the process. */
const heapMib = 512

/** Works that wait for the thread, each for less than a quarter of a second of it: of one tenant, and in all. */
const mostWaitingPerTenant = 16
const mostWaiting = 64

/** Seconds after which a client that was turned away may find a place. */
const retryAfter = 2

/** What the thread is started with: special tokens and their ids. */
export interface GrammarThreadData {
  readonly tokens: ReadonlyMap<string, number>
}

/** What it answers each message, the JSON of a `CallGrammarOptions` without `token`. */
export type FromThread =
  | { readonly bytes: Uint8Array }
  | { readonly refused: { readonly reason: Reason; readonly message: string; readonly path: string } }

/** Starts a thread whose protocol is that of `grammarThreadEntry.ts`. */
export type StartThread = () => Worker

interface Job {
  readonly work: string
  readonly tenant: string
  readonly end: (outcome: Effect.Effect<Uint8Array, GrammarError | Overloaded>) => void
}

/** Compiles in another thread, one grammar at a time, the tenants in turns. The thread is started with the first and stays for the next ones. */
export class GrammarThread {
  readonly #start: StartThread
  #waiting: Array<Job> = []
  #active: Job | undefined
  #thread: Worker | undefined
  #lastTenant = ""
  #closed = false

  constructor(start: StartThread) {
    this.#start = start
  }

  /** It ends with the scope. */
  static readonly make = (start: StartThread): Effect.Effect<GrammarThread, never, Scope.Scope> =>
    Effect.acquireRelease(Effect.sync(() => new GrammarThread(start)), (thread) => Effect.promise(() => thread.close()))

  /**
   * The bytes of a grammar. Fails with `TooLarge` too where the thread ends on it, which takes no other's work along, and with `Overloaded` where too
   * much waits already.
   */
  compile(work: string, tenant: string): Effect.Effect<Uint8Array, GrammarError | Overloaded> {
    return Effect.callback((resume) => {
      const job: Job = { work, tenant, end: resume }
      const scope = this.#full(tenant)
      if (scope !== undefined) return resume(new Overloaded({ scope, waitingFor: "grammar", retryAfter }))
      this.#waiting.push(job)
      this.#next()
      // What has begun ends by its own budget, and its answer reaches nobody.
      return Effect.sync(() => {
        this.#waiting = this.#waiting.filter((other) => other !== job)
      })
    })
  }

  #full(tenant: string): Overloaded["scope"] | undefined {
    if (this.#waiting.filter((job) => job.tenant === tenant).length >= mostWaitingPerTenant) return "tenant"
    return this.#waiting.length >= mostWaiting ? "server" : undefined
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#thread?.terminate()
  }

  #next(): void {
    if (this.#closed || this.#active !== undefined) return
    const other = this.#waiting.findIndex(({ tenant }) => tenant !== this.#lastTenant)
    const [job] = this.#waiting.splice(Math.max(other, 0), 1)
    if (job === undefined) {
      this.#thread?.unref()
      return
    }
    this.#active = job
    this.#lastTenant = job.tenant
    const thread = this.#thread ??= this.#listen(this.#start())
    thread.ref()
    thread.postMessage(job.work, [])
  }

  #end(outcome: Effect.Effect<Uint8Array, GrammarError>): void {
    const job = this.#active
    this.#active = undefined
    job?.end(outcome)
    // What waits for the same need not be done again.
    const same = this.#waiting.filter(({ work }) => work === job?.work)
    this.#waiting = this.#waiting.filter(({ work }) => work !== job?.work)
    for (const other of same) other.end(outcome)
    this.#next()
  }

  #listen(thread: Worker): Worker {
    thread.on("message", (message: FromThread) => {
      this.#end("bytes" in message ? Effect.succeed(message.bytes) : Effect.fail(new GrammarError(message.refused)))
    })
    // An error ends the thread, which is told by `exit`.
    thread.on("error", () => {})
    thread.on("exit", () => {
      this.#thread = undefined
      this.#end(
        Effect.fail(
          new GrammarError({ reason: "TooLarge", message: "this cannot be enforced: the thread that compiles it ended", path: "" })
        )
      )
    })
    return thread
  }
}

/** The thread for a model's special tokens. */
export const startThread = (tokens: () => ReadonlyMap<string, number>): StartThread => () => {
  const workerData: GrammarThreadData = { tokens: tokens() }
  return new Worker(programPath("grammar/grammarThreadEntry.ts", "grammars"), {
    workerData,
    name: "mashbox-grammars",
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMib }
  })
}
