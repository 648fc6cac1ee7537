import { GrammarError } from "./GrammarError.ts"

/** Milliseconds that compiling one schema or grammar may take. */
export const mostMilliseconds = 200

/** Steps between two looks at the clock. */
const stride = 256

/** Ends a compilation that takes too long. */
export class Budget {
  readonly #deadline = performance.now() + mostMilliseconds
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
    if (performance.now() > this.#deadline) {
      throw new GrammarError({
        reason: "TooLarge",
        message: `the ${this.#what} is too large to be enforced: it took more than ${mostMilliseconds} ms to read`,
        path: ""
      })
    }
  }
}
