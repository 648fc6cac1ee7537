import { GrammarError } from "./GrammarError.ts"

/** Milliseconds of processor time that compiling all schemas and grammars of one request may take. */
export const mostMilliseconds = 150

/** Of them, what goes to that which can be given up: schemas whose calls may have any arguments just as well. */
export const mostForOptional = 75

/** Steps between two looks at the clock. */
const stride = 64

/**
 * The thread's own time, so that a loaded machine refuses nothing that an idle one takes. Node 22 cannot tell it: there the time is that of the
 * clock, and what is refused depends on what else the machine does.
 */
const elapsed = (): number => {
  if (typeof process.threadCpuUsage !== "function") return performance.now()
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}

/** Ends a compilation that takes too long. One for each request. */
export class Budget {
  readonly #start = elapsed()
  #deadline = this.#start + mostMilliseconds
  #steps = 0

  /** @throws GrammarError after `mostMilliseconds`. */
  step(): void {
    if (++this.#steps % stride === 0) this.check()
  }

  /** The same, with a look at the clock. */
  check(): void {
    if (elapsed() > this.#deadline) {
      throw new GrammarError({
        reason: "TooLarge",
        message: `too large to be enforced: what the request asks for takes more than ${mostMilliseconds} ms to compile`,
        path: ""
      })
    }
  }

  /** Work that can be given up, and gets less time. */
  optional<A>(work: () => A): A {
    const own = this.#deadline
    this.#deadline = Math.min(own, this.#start + mostForOptional)
    try {
      return work()
    } finally {
      this.#deadline = own
    }
  }
}
