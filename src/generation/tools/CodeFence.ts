/** Follows text line by line and knows whether it is inside a fenced code block: an odd number of lines so far began with three backticks. */
export class CodeFence {
  /** Backticks at the start of the current line; -1 once the line has gone on with something else or with three. */
  #ticks = 0
  open = false

  push(text: string): void {
    if (this.#ticks < 0 && !text.includes("\n")) return
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit === 10) this.#ticks = 0
      else if (this.#ticks < 0) continue
      else if (unit !== 96) this.#ticks = -1
      else if (++this.#ticks === 3) {
        this.open = !this.open
        this.#ticks = -1
      }
    }
  }
}
