/** Longest passage whose repetition is noticed, in tokens. */
const longestPeriod = 256

/** Times that a passage stands in a row at least, however long it is. */
const leastTimes = 8

/**
 * Notices output that says the same over and over: the last `limit` tokens are one passage of at most 256 tokens, at least eight times in a row.
 * It looks again only after as many tokens as a repetition lacks at least, so that a token of changing text costs next to nothing.
 */
export class RepetitionDetector {
  private readonly limit: number
  private readonly tokens: Array<number> = []
  /** Tokens before which nothing can be noticed. */
  private next = 1

  /** `limit`: at least 1. */
  constructor(limit: number) {
    this.limit = limit
  }

  /** Takes the next token; true where the output repeats itself. */
  push(token: number): boolean {
    if (this.tokens.push(token) < this.next) return false
    const lacking = this.lacking()
    this.next = this.tokens.length + Math.max(1, lacking)
    return lacking === 0
  }

  /** Tokens that would have to follow, at least, before the output repeats itself. */
  private lacking(): number {
    let least = Infinity
    for (let period = 1; period <= longestPeriod; period++) {
      // So many tokens have to equal the one a period before them.
      const needed = Math.max(this.limit - period, period * (leastTimes - 1))
      least = Math.min(least, needed - this.run(period, needed))
    }
    return least
  }

  /** How many of the last tokens equal the one a period before them, `most` at most. */
  private run(period: number, most: number): number {
    const { tokens } = this
    const end = tokens.length
    const bound = Math.min(most, end - period)
    let run = 0
    while (run < bound && tokens[end - 1 - run] === tokens[end - 1 - run - period]) run++
    return run
  }
}
