import { Worker } from "node:worker_threads"
import type { Vocabulary } from "../../src/models/ModelMetadata.ts"

/** Masks along outputs, in microseconds. */
export interface PeerMasks {
  /** Of the thread's work. */
  readonly mean: number
  /** Of the clock, one by one: there is no finer measure of work. */
  readonly times: ReadonlyArray<number>
}

/** Costs of one grammar, in microseconds. */
export interface PeerMeasured {
  /** Of the thread's work. */
  readonly compile: ReadonlyArray<number>
  /** Each state met for the first time, and once more. */
  readonly first: PeerMasks
  readonly again: PeerMasks
  /** Outputs that it does not take to their end. */
  readonly refused: number
}

export interface PeerSubject {
  readonly schema: string
  readonly outputs: ReadonlyArray<ReadonlyArray<number>>
}

export type PeerVocabulary = Pick<Vocabulary, "tokens"> & { readonly eos: number }

/** What the thread says: that it is ready, after so many milliseconds of work, and then one result for each subject. */
export type PeerMessage =
  | { readonly kind: "ready"; readonly milliseconds: number }
  | { readonly kind: "measured"; readonly measured: PeerMeasured }

/** Milliseconds of the clock for one subject. */
const patience = 25_000

/** `@mlc-ai/web-xgrammar` over this byte-level vocabulary, in a thread of its own that is ended where it takes too long. */
export class XGrammar {
  readonly #vocabulary: PeerVocabulary
  #worker: Worker | undefined
  #milliseconds = Number.NaN

  constructor(vocabulary: PeerVocabulary) {
    this.#vocabulary = vocabulary
  }

  /** Of work to make the vocabulary ready. */
  get milliseconds(): number {
    return this.#milliseconds
  }

  /** None where it is not done in time. */
  async measure(schema: object, outputs: ReadonlyArray<ReadonlyArray<number>>): Promise<PeerMeasured | undefined> {
    const worker = this.#worker ??= await this.#start()
    const subject: PeerSubject = { schema: JSON.stringify(schema), outputs }
    worker.postMessage(subject, [])
    const message = await answer(worker, patience)
    if (message?.kind === "measured") return message.measured
    await this.close()
    return undefined
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
    this.#worker = undefined
  }

  async #start(): Promise<Worker> {
    const worker = new Worker(new URL("./xgrammarWorker.ts", import.meta.url), { workerData: this.#vocabulary })
    const message = await answer(worker, undefined)
    if (message?.kind !== "ready") throw new Error("xgrammar does not start")
    this.#milliseconds = message.milliseconds
    return worker
  }
}

const answer = (worker: Worker, limit: number | undefined): Promise<PeerMessage | undefined> =>
  new Promise((resolve, reject) => {
    const timer = limit === undefined ? undefined : setTimeout(() => settle(() => resolve(undefined)), limit)
    const onMessage = (message: PeerMessage) => settle(() => resolve(message))
    const onError = (error: Error) => settle(() => reject(error))
    const settle = (done: () => void) => {
      clearTimeout(timer)
      worker.off("message", onMessage)
      worker.off("error", onError)
      done()
    }
    worker.on("message", onMessage)
    worker.on("error", onError)
  })
