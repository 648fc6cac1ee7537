import type { PassageLimit } from "./Native.ts"

/** Follows the output of one scripted request as the native scheduler does, and says which tokens its limit forces. */
export class PassageFollower {
  readonly #limit: PassageLimit | undefined
  #place: "before" | "inside" | "forcing" | "after" = "after"
  #recent: ReadonlyArray<number> = []
  #inside = 0
  #next = 0

  constructor(limit: PassageLimit | undefined) {
    this.#limit = limit
    if (limit === undefined) return
    this.#place = limit.begin.length === 0 ? "inside" : "before"
    this.#check(limit)
  }

  /** The token that has to come next, where one has to. */
  get forced(): number | undefined {
    return this.#place === "forcing" ? this.#limit?.forced[this.#next] : undefined
  }

  /** The next token of the output, forced or not. */
  take(token: number): void {
    const limit = this.#limit
    if (limit === undefined || this.#place === "after") return
    if (this.#place === "forcing") {
      if (++this.#next === limit.forced.length) this.#place = "after"
      return
    }
    this.#recent = [...this.#recent, token].slice(-Math.max(limit.begin.length, limit.end.length))
    if (this.#place === "before") {
      if (!this.#endsWith(limit.begin)) return
      this.#place = "inside"
      this.#recent = []
    } else {
      this.#inside++
      if (this.#endsWith(limit.end)) {
        this.#place = "after"
        return
      }
    }
    this.#check(limit)
  }

  #endsWith(tokens: ReadonlyArray<number>): boolean {
    const from = this.#recent.length - tokens.length
    return from >= 0 && tokens.every((token, index) => token === this.#recent[from + index])
  }

  #check(limit: PassageLimit): void {
    if (this.#place === "inside" && this.#inside >= limit.tokens) this.#place = limit.forced.length === 0 ? "after" : "forcing"
  }
}
