import { isSpace } from "./JsonScanner.ts"

const withoutLeading = (text: string): string => {
  let start = 0
  while (start < text.length && isSpace(text.charAt(start))) start++
  return text.slice(start)
}

const withoutTrailing = (text: string): string => {
  let end = text.length
  while (end > 0 && isSpace(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

/** Text without the white space next to calls, and without a last line break where that is no part of the text; what is left on both sides of a call is joined by a line break. */
export class CallSpacing {
  readonly #emit: (text: string) => void
  readonly #dropsBreak: boolean
  /** White space at the end of the text so far. */
  #space = ""
  #anyText = false
  #afterCall = false

  /** `dropsBreak`: a turn ends with a line break of the format's own. */
  constructor(emit: (text: string) => void, dropsBreak = false) {
    this.#emit = emit
    this.#dropsBreak = dropsBreak
  }

  text(text: string): void {
    const own = this.#afterCall ? withoutLeading(text) : text
    const body = withoutTrailing(own)
    const space = own.slice(body.length)
    if (body === "") {
      this.#space += space
      return
    }
    const before = this.#afterCall && this.#anyText ? "\n" : this.#space
    this.#space = space
    this.#afterCall = false
    this.#anyText = true
    this.#emit(before + body)
  }

  call(): void {
    this.#space = ""
    this.#afterCall = true
  }

  /** The output is over. */
  end(): void {
    const space = this.#dropsBreak && this.#space.endsWith("\n") ? this.#space.slice(0, -1) : this.#space
    this.#space = ""
    if (space !== "" && !this.#afterCall) this.#emit(space)
  }
}
