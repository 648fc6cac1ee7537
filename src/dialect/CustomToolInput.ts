const opening = /^\s*\{\s*"input"\s*:\s*"/
const escape = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/y
const plain: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit < 0xdc00

/** The `input` of a call's arguments, or the arguments as they are where they are no such object. */
const inputOf = (text: string): string => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "object" && value !== null && "input" in value && typeof value.input === "string") return value.input
  } catch {
    // Not JSON: the model wrote the input without its frame.
  }
  return text
}

/**
 * The input of a custom tool out of the arguments that the model writes for it, `{"input": "..."}`, while they stream in. Arguments of
 * another shape come out as they are, at the end.
 */
export class CustomToolInput {
  /** The input so far. */
  value = ""
  private rest = ""
  private state: "opening" | "string" | "closed" = "opening"

  /** Takes a piece of the arguments; the new input in it. */
  push(piece: string): string {
    if (this.state === "closed") return ""
    this.rest += piece
    if (this.state === "opening") {
      const match = opening.exec(this.rest)
      if (match === null) return ""
      this.state = "string"
      this.rest = this.rest.slice(match[0].length)
    }
    return this.take(this.unescape())
  }

  /** The arguments are over: what was held back. */
  end(): string {
    const { rest } = this
    this.rest = ""
    if (this.state === "opening") return this.take(inputOf(rest))
    return this.state === "string" && !rest.startsWith("\\") ? this.take(rest) : ""
  }

  private take(text: string): string {
    this.value += text
    return text
  }

  private unescape(): string {
    const { rest } = this
    let text = ""
    let at = 0
    while (at < rest.length) {
      const char = rest.charAt(at)
      if (char === "\"") {
        this.state = "closed"
        this.rest = ""
        return text
      }
      if (char !== "\\") {
        let end = at + 1
        while (end < rest.length && rest[end] !== "\"" && rest[end] !== "\\") end++
        text += rest.slice(at, end)
        at = end
        continue
      }
      const unit = this.escapeAt(at)
      if (unit === undefined) break
      text += unit.text
      at += unit.length
    }
    this.rest = rest.slice(at)
    return text
  }

  /** The escape at a place; undefined while it, or the low surrogate that belongs to it, is not complete. */
  private escapeAt(at: number): { readonly text: string; readonly length: number } | undefined {
    const { rest } = this
    escape.lastIndex = at
    const match = escape.exec(rest)
    if (match === null) {
      const left = rest.slice(at)
      return /^\\(?:u[0-9a-fA-F]{0,3})?$/.test(left) ? undefined : { text: "\\", length: 1 }
    }
    const [whole, code, simple = ""] = match
    if (code === undefined) return { text: plain[simple] ?? simple, length: whole.length }
    const unit = Number.parseInt(code, 16)
    if (!isHighSurrogate(unit)) return { text: String.fromCharCode(unit).toWellFormed(), length: whole.length }
    const next = rest.slice(at + whole.length, at + whole.length + 6)
    if (/^\\u[0-9a-fA-F]{4}$/.test(next)) {
      const pair = String.fromCharCode(unit, Number.parseInt(next.slice(2), 16))
      return pair.isWellFormed() ? { text: pair, length: whole.length + 6 } : { text: "\ufffd", length: whole.length }
    }
    return next.length < 6 && "\\u".startsWith(next.slice(0, 2)) ? undefined : { text: "\ufffd", length: whole.length }
  }
}
