import { GrammarError, type Reason } from "./GrammarError.ts"

/** Parentheses in parentheses. */
const deepest = 200

/** Reads a grammar's text; every error names line and column. */
export class TextCursor {
  readonly text: string
  at = 0
  #depth = 0

  constructor(text: string) {
    this.text = text
  }

  get isDone(): boolean {
    return this.at >= this.text.length
  }

  get next(): string {
    return this.text[this.at] ?? ""
  }

  take(expected: string): boolean {
    if (!this.text.startsWith(expected, this.at)) return false
    this.at += expected.length
    return true
  }

  /** The next match of a sticky expression. */
  match(expression: RegExp): string | undefined {
    expression.lastIndex = this.at
    const [found] = expression.exec(this.text) ?? []
    if (found === undefined) return undefined
    this.at += found.length
    return found
  }

  /** Whether a sticky expression matches here; nothing is read. */
  sees(expression: RegExp): boolean {
    expression.lastIndex = this.at
    return expression.test(this.text)
  }

  /** One whole character. */
  character(): string {
    const point = this.text.codePointAt(this.at)
    if (point === undefined) return this.fail("Invalid", "the grammar ends too early")
    const character = String.fromCodePoint(point)
    this.at += character.length
    return character
  }

  /** What is between brackets; `read` gets to the closing one. */
  nested<A>(read: () => A): A {
    if (++this.#depth > deepest) this.fail("TooLarge", `parentheses are nested deeper than ${deepest}`)
    const inner = read()
    this.#depth--
    return inner
  }

  /** @throws GrammarError at an offset, by default where the cursor stands. */
  fail(reason: Reason, message: string, offset = this.at): never {
    const before = this.text.slice(0, offset)
    const line = before.split("\n").length
    const column = offset - before.lastIndexOf("\n")
    throw new GrammarError({ reason, message: `line ${line}, column ${column}: ${message}`, path: "", line, column })
  }
}

/** A repetition `{m}`, `{m,}` or `{m,n}`, read up to its end. */
export const repetition = (cursor: TextCursor, written: RegExp): readonly [min: number, max: number | null] | undefined => {
  const start = cursor.at
  const text = cursor.match(written)
  if (text === undefined) return undefined
  const [min = "0", max] = [...text.matchAll(/\d+|(?<=[,.])(?=\s*\})/g)].map(([number]) => number)
  const [low, high] = [Number(min), max === undefined ? Number(min) : max === "" ? null : Number(max)]
  if (high !== null && low > high) cursor.fail("Invalid", "the numbers of a repetition are out of order", start)
  if (Math.max(low, high ?? 0) > 1_000_000) cursor.fail("TooLarge", "a repetition of more than 1000000", start)
  return [low, high]
}
