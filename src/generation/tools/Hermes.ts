import { CodeFence } from "./CodeFence.ts"
import { isSpace, JsonScanner } from "./JsonScanner.ts"
import type { ToolCallParser, ToolCallSink, ToolCallSyntax } from "./ToolCallParser.ts"

const opener = "<tool_call>"
const closer = "</tool_call>"

const beginsTag = (text: string): boolean => opener.startsWith(text) || closer.startsWith(text)

const parse = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** The object that a JSON string holds, as JSON text; a blank string counts as an empty one. */
const objectInString = (json: string): string | undefined => {
  const text = parse(json)
  if (typeof text !== "string") return undefined
  if (text.trim() === "") return "{}"
  const value = parse(text)
  return typeof value === "object" && value !== null && !Array.isArray(value) ? text : undefined
}

const escapeControl = (unit: string): string => JSON.stringify(unit).slice(1, -1)

/** A call's JSON object, read a character at a time. */
class CallReader {
  readonly #scanner = new JsonScanner()
  #key = ""
  /** The key of the value that is being read, where it is one of a call's own. */
  #field: "name" | "arguments" | undefined
  #rawName = ""
  #shape: "object" | "string" | "null" | undefined
  #arguments = ""
  name: string | undefined
  argumentsDone = false

  get done(): boolean {
    return this.#scanner.depth === 0 && this.#scanner.afterValue
  }

  /** Whether this is a call for good: its name is known, and its arguments are complete or have begun as an object does. */
  get certain(): boolean {
    if (this.name === undefined) return false
    return this.argumentsDone ||
      (this.#field === "arguments" && this.#shape === "object" && (this.#scanner.depth > 2 || !this.#scanner.inEmptyObject))
  }

  /** The arguments that came since the last time. Control characters in their strings are escaped, since a client could not read them. */
  takeArguments(): string {
    const text = this.#arguments
    this.#arguments = ""
    return text
  }

  /** Takes the next character; false where this is no call. */
  step(unit: string): boolean {
    const scanner = this.#scanner
    const { depth, inKey, inString } = scanner
    if (depth === 1 && scanner.beforeKey) this.#key = ""
    if (depth === 1 && scanner.beforeValue && !isSpace(unit) && !this.#beginValue(unit)) return false
    if (!scanner.step(unit)) return false
    if (depth === 1 && (inKey || scanner.inKey)) this.#key += unit
    if (this.#field === "name") this.#rawName += unit
    else if (this.#field === "arguments") this.#arguments += inString && unit < " " ? escapeControl(unit) : unit
    if (this.#field !== undefined && scanner.depth === 1 && scanner.afterValue) return this.#endValue()
    if (this.done && !this.argumentsDone) {
      this.#arguments = "{}"
      this.argumentsDone = true
    }
    return true
  }

  #beginValue(unit: string): boolean {
    const key = parse(this.#key)
    if (key === "name" && this.name === undefined) {
      this.#field = "name"
      return unit === "\""
    }
    if (key === "arguments" && this.#shape === undefined) {
      this.#field = "arguments"
      this.#shape = unit === "{" ? "object" : unit === "\"" ? "string" : unit === "n" ? "null" : undefined
      return this.#shape !== undefined
    }
    return true
  }

  #endValue(): boolean {
    const field = this.#field
    this.#field = undefined
    if (field === "name") {
      const name = parse(this.#rawName)
      if (typeof name !== "string" || name === "") return false
      this.name = name
      return true
    }
    const text = this.#shape === "object" ? this.#arguments : this.#shape === "null" ? "{}" : objectInString(this.#arguments)
    if (text === undefined) return false
    this.#arguments = text
    this.argumentsDone = true
    return true
  }
}

/**
 * `<tool_call>` white space, a JSON object, white space, `</tool_call>`, the closing tag optional at the end and before another call. The object
 * has "name" and perhaps "arguments": an object, or a string that holds one. Inside a fenced code block nothing is a call. Arguments that go
 * wrong once the call has started are handed on as they are, up to the closing tag.
 */
class HermesParser implements ToolCallParser {
  readonly #sink: ToolCallSink
  readonly #fence = new CodeFence()
  #mode: "text" | "gap" | "call" | "broken" | "closing" = "text"
  /** Read, and neither text nor part of a call yet. */
  #held = ""
  #text = ""
  #reader = new CallReader()
  #started = false
  #brokenArguments = ""

  constructor(sink: ToolCallSink) {
    this.#sink = sink
  }

  push(piece: string): void {
    if (this.#mode === "text" && this.#held === "" && !piece.includes("<")) this.#addText(piece)
    else for (let i = 0; i < piece.length; i++) this.#step(piece.charAt(i))
    this.#flush()
  }

  end(): void {
    if (this.#mode === "broken") {
      this.#brokenArguments += this.#held
      this.#finishCall()
    } else if (this.#mode === "call" && this.#started) this.#finishCall()
    else this.#addText(this.#held)
    this.#held = ""
    this.#mode = "text"
    this.#flush()
  }

  #step(unit: string): void {
    switch (this.#mode) {
      case "text":
        return this.#stepText(unit)
      case "gap":
        if (isSpace(unit)) this.#held += unit
        else if (unit === "{") {
          this.#mode = "call"
          this.#reader = new CallReader()
          this.#started = false
          this.#stepCall(unit)
        } else this.#release(unit)
        return
      case "call":
        return this.#stepCall(unit)
      case "broken":
        return this.#stepBroken(unit)
      case "closing":
        return this.#stepClosing(unit)
    }
  }

  #stepText(unit: string): void {
    if (this.#held !== "") {
      if (opener[this.#held.length] === unit) {
        this.#held += unit
        if (this.#held === opener) this.#mode = "gap"
        return
      }
      this.#addText(this.#held)
      this.#held = ""
    }
    if (unit === "<" && !this.#fence.open) this.#held = unit
    else this.#addText(unit)
  }

  #stepCall(unit: string): void {
    if (!this.#reader.step(unit)) return this.#breakOff(unit)
    if (!this.#started) {
      this.#held += unit
      if (this.#reader.certain) this.#start()
    }
    if (!this.#reader.done) return
    if (this.#started) {
      this.#finishCall()
      this.#mode = "closing"
    } else this.#release("")
  }

  #stepBroken(unit: string): void {
    const tag = this.#held + unit
    if (beginsTag(tag)) {
      this.#held = tag
      if (tag === closer || tag === opener) {
        this.#finishCall()
        this.#mode = tag === closer ? "text" : "gap"
        this.#held = tag === closer ? "" : opener
      }
      return
    }
    this.#brokenArguments += this.#held
    this.#held = unit === "<" ? unit : ""
    if (unit !== "<") this.#brokenArguments += unit
  }

  #stepClosing(unit: string): void {
    if (this.#held === "" && isSpace(unit)) return
    const tag = this.#held + unit
    if (!beginsTag(tag)) return this.#release(unit)
    this.#held = tag
    if (tag === closer) {
      this.#held = ""
      this.#mode = "text"
    } else if (tag === opener) this.#mode = "gap"
  }

  #start(): void {
    this.#flush()
    this.#started = true
    this.#held = ""
    this.#sink.start(this.#reader.name ?? "")
  }

  /** The object is not one of a call: text, or, where the call has started, what is left of its arguments. */
  #breakOff(unit: string): void {
    if (!this.#started) return this.#release(unit)
    if (this.#reader.argumentsDone) {
      this.#finishCall()
      this.#mode = "closing"
    } else this.#mode = "broken"
    this.#step(unit)
  }

  /** What was held is text after all; `unit` comes after it. */
  #release(unit: string): void {
    this.#addText(this.#held)
    this.#held = ""
    this.#mode = "text"
    if (unit !== "") this.#stepText(unit)
  }

  #finishCall(): void {
    this.#flushArguments()
    this.#started = false
    this.#sink.end()
  }

  #addText(text: string): void {
    this.#text += text
    this.#fence.push(text)
  }

  #flush(): void {
    if (this.#text !== "") {
      const text = this.#text
      this.#text = ""
      this.#sink.text(text)
    }
    if (this.#started) this.#flushArguments()
  }

  #flushArguments(): void {
    const text = this.#reader.takeArguments() + this.#brokenArguments
    this.#brokenArguments = ""
    if (text !== "") this.#sink.argument(text)
  }
}

/** Hermes and its heirs, Qwen2.5 and Qwen3. */
export const hermes: ToolCallSyntax = {
  name: "hermes",
  matches: (renderedCall) => /<tool_call>\s*\{\s*"name":/.test(renderedCall),
  parser: (sink) => new HermesParser(sink)
}
