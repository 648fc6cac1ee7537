import { isMarked, type Text, textOf } from "./MarkedText.ts"
import { JinjaError } from "./Values.ts"

export interface RunOptions {
  /** Evaluation steps this render may take. */
  readonly steps: number
  /** UTF-16 units of text this render may produce, intermediate results included. */
  readonly textLength: number
  /** Milliseconds since the epoch, for `strftime_now`. */
  readonly now: number
  /** Texts that a template finds in a user's text only where the user did not write them. */
  readonly protectedTexts: ReadonlyArray<string>
}

/** What one render shares: its budget, its clock and how it searches text. A template is part of an untrusted file. */
export class Run {
  readonly now: number
  depth = 0
  #steps: number
  #textLength: number
  readonly #protectedTexts: ReadonlyArray<string>
  readonly #protected = new Map<string, boolean>()

  constructor(options: RunOptions) {
    this.now = options.now
    this.#steps = options.steps
    this.#textLength = options.textLength
    this.#protectedTexts = options.protectedTexts
  }

  step(count = 1): void {
    if ((this.#steps -= count) < 0) throw new JinjaError("the chat template runs for too long")
  }

  /** Charges for text before it is made. */
  produce(length: number): void {
    if ((this.#textLength -= length) < 0) throw new JinjaError("the chat template produces too much text")
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
    if (typeof text === "string" || at < 0 || !this.#isProtected(wanted)) return at
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
      (typeof text === "string" || !isMarked(text, offset, offset + wanted.length) || !this.#isProtected(wanted))
  }

  #isProtected(needle: string): boolean {
    let known = this.#protected.get(needle)
    if (known === undefined) {
      known = this.#protectedTexts.some((text) => needle.includes(text))
      this.#protected.set(needle, known)
    }
    return known
  }
}
