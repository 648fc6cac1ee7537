import { isMarked, type Text, textOf } from "./MarkedText.ts"
import { JinjaError } from "./Values.ts"

/** The template ran out of its budget. */
export class BudgetError extends JinjaError {}

/** Texts that a template finds in marked text only where no character is marked: it cannot take a user's words for its own tags. */
export class Protection {
  static readonly none = new Protection([])
  readonly #texts: ReadonlyArray<string>
  readonly #known = new Map<string, boolean>()

  constructor(texts: ReadonlyArray<string>) {
    this.#texts = texts
  }

  /** Whether `needle` contains a protected text. */
  has(needle: string): boolean {
    let known = this.#known.get(needle)
    if (known === undefined) {
      known = this.#texts.some((text) => needle.includes(text))
      if (this.#known.size >= 1000) this.#known.clear()
      this.#known.set(needle, known)
    }
    return known
  }
}

export interface RunOptions {
  /** Evaluation steps this render may take. */
  readonly steps: number
  /** UTF-16 units of text this render may produce, intermediate results included. */
  readonly textLength: number
  /** Milliseconds since the epoch, for `strftime_now`. */
  readonly now: number
  readonly protection: Protection
}

/** What one render shares: its budget, its clock and how it searches text. A template is part of an untrusted file. */
export class Run {
  readonly now: number
  depth = 0
  #steps: number
  #textLength: number
  readonly #protection: Protection

  constructor(options: RunOptions) {
    this.now = options.now
    this.#steps = options.steps
    this.#textLength = options.textLength
    this.#protection = options.protection
  }

  step(count = 1): void {
    if ((this.#steps -= count) < 0) throw new BudgetError("the chat template runs for too long")
  }

  /** Charges for text before it is made. */
  produce(length: number): void {
    if ((this.#textLength -= length) < 0) throw new BudgetError("the chat template produces too much text")
  }

  enter(): void {
    if (++this.depth > 200) throw new JinjaError("the chat template calls itself too deeply")
  }

  leave(): void {
    this.depth--
  }

  /** First offset ≥ `from` at which the template may find `needle`, or -1. */
  find(text: Text, needle: Text, from = 0): number {
    const haystack = textOf(text)
    const wanted = textOf(needle)
    this.step(1 + ((haystack.length - from) >> 8))
    let at = haystack.indexOf(wanted, from)
    if (typeof text === "string" || at < 0 || !this.#protection.has(wanted)) return at
    while (at >= 0 && isMarked(text, at, at + wanted.length)) {
      this.step()
      at = haystack.indexOf(wanted, at + 1)
    }
    return at
  }

  /** Whether the template may find `needle` at `offset`. */
  matchesAt(text: Text, needle: Text, offset: number): boolean {
    const wanted = textOf(needle)
    return textOf(text).startsWith(wanted, offset) &&
      (typeof text === "string" || !isMarked(text, offset, offset + wanted.length) || !this.#protection.has(wanted))
  }
}
