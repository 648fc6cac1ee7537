import { GrammarError } from "./GrammarError.ts"

/** Milliseconds of processor time that compiling one schema or grammar may take. */
export const mostMilliseconds = 200

/** Steps between two looks at the clock. */
const stride = 64

/** The thread's own time, so that a loaded machine refuses nothing that an idle one takes; Node 22 has only the clock. */
const elapsed = (): number => {
  if (typeof process.threadCpuUsage !== "function") return performance.now()
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}

/** Ends a compilation that takes too long. */
export class Budget {
  readonly #deadline = elapsed() + mostMilliseconds
  readonly #what: string
  #steps = 0

  constructor(what: string) {
    this.#what = what
  }

  /** @throws GrammarError after `mostMilliseconds`. */
  step(): void {
    if (++this.#steps % stride === 0) this.check()
  }

  /** The same, with a look at the clock. */
  check(): void {
    if (elapsed() > this.#deadline) {
      throw new GrammarError({
        reason: "TooLarge",
        message: `the ${this.#what} is too large to be enforced: it took more than ${mostMilliseconds} ms to compile`,
        path: ""
      })
    }
  }
}
