/** Longest passage whose repetition is noticed, in tokens. */
const longestPeriod = 256

/** Times that a passage stands in a row at least, however long it is. */
const leastTimes = 8

/**
 * Notices output that says the same over and over: the last `limit` tokens are one passage of at most 256 tokens, at least eight times in a row.
 * A token costs a comparison for each length that a passage can have.
 */
export class RepetitionDetector {
  private readonly limit: number
  private readonly recent = new Int32Array(longestPeriod)
  /** For each period, how many of the last tokens equal the one a period before them. */
  private readonly runs = new Int32Array(longestPeriod + 1)
  private count = 0

  /** `limit`: at least 1. */
  constructor(limit: number) {
    this.limit = limit
  }

  /** Takes the next token; true where the output repeats itself. */
  push(token: number): boolean {
    const { recent, runs } = this
    const periods = Math.min(longestPeriod, this.count)
    let found = false
    for (let period = 1; period <= periods; period++) {
      if (recent[(this.count - period) & (longestPeriod - 1)] !== token) {
        runs[period] = 0
        continue
      }
      const run = (runs[period] ?? 0) + 1
      runs[period] = run
      if (run + period >= this.limit && run >= period * (leastTimes - 1)) found = true
    }
    recent[this.count & (longestPeriod - 1)] = token
    this.count++
    return found
  }
}
