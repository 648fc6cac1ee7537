import { type CallOutput, type CallReader, CallScanner, type Verdict } from "./CallScanner.ts"
import { isSpace } from "./JsonScanner.ts"
import { jsonUnit, Literal, ToolName, wordJson } from "./Text.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

export const opener = "<|tool_call>"
export const closer = "<tool_call|>"
/** Stands on both sides of a string, which has no escapes. */
export const quote = "<|\"|>"

type Place = "value" | "valueOrEnd" | "key" | "keyOrEnd" | "bareKey" | "colon" | "word" | "opening" | "string" | "next" | "over"

/** Reads an object as Gemma 4 writes it, from its brace on, into JSON. */
class GemmaObject {
  readonly #argument: (json: string) => void
  /** Open objects and arrays, true for objects. */
  readonly #open: Array<boolean> = []
  #place: Place = "value"
  #bare = ""
  /** How much of a quote has come. */
  #quote = 0
  #inKey = false
  /** A string has begun, or a value of another kind is whole. */
  certain = false

  constructor(argument: (json: string) => void) {
    this.#argument = argument
  }

  get done(): boolean {
    return this.#place === "over"
  }

  /** Takes a character; false where no object goes on like this, which takes nothing. */
  step(unit: string): boolean {
    switch (this.#place) {
      case "value":
      case "valueOrEnd":
        return isSpace(unit) || this.#beginValue(unit)
      case "key":
      case "keyOrEnd":
        return isSpace(unit) || this.#beginKey(unit)
      case "bareKey":
        if (unit === ":") {
          this.#argument(`${JSON.stringify(this.#bare.trimEnd())}: `)
          this.#place = "value"
          return true
        }
        this.#bare += unit
        return !"{}[],<".includes(unit)
      case "colon":
        if (isSpace(unit)) return true
        this.#argument(": ")
        this.#place = "value"
        return unit === ":"
      case "word":
        if (!isSpace(unit) && !",}]".includes(unit)) {
          this.#bare += unit
          return !"<{[:".includes(unit)
        }
        return this.#endWord() && this.step(unit)
      case "opening":
        if (quote[this.#quote] !== unit) return false
        if (++this.#quote < quote.length) return true
        this.#quote = 0
        this.#place = "string"
        this.#argument("\"")
        if (!this.#inKey) this.certain = true
        return true
      case "string":
        this.#stepString(unit)
        return true
      case "next":
        return isSpace(unit) || this.#continue(unit)
      case "over":
        return false
    }
  }

  #beginValue(unit: string): boolean {
    if (unit === "]" && this.#place === "valueOrEnd") return this.#close(false)
    if (this.#open.length === 0 && unit !== "{") return false
    if (unit === "{" || unit === "[") {
      this.#open.push(unit === "{")
      this.#argument(unit)
      this.#place = unit === "{" ? "keyOrEnd" : "valueOrEnd"
      return true
    }
    if (unit === "<") return this.#beginString(false)
    this.#bare = unit
    this.#place = "word"
    return /^[-\dtfnTFN]$/.test(unit)
  }

  #beginKey(unit: string): boolean {
    if (unit === "}" && this.#place === "keyOrEnd") return this.#close(true)
    if (unit === "<") return this.#beginString(true)
    this.#bare = unit
    this.#place = "bareKey"
    return !":{}[],".includes(unit)
  }

  #beginString(inKey: boolean): true {
    this.#inKey = inKey
    this.#quote = 1
    this.#place = "opening"
    return true
  }

  #stepString(unit: string): void {
    if (quote[this.#quote] === unit) {
      if (++this.#quote < quote.length) return
      this.#quote = 0
      this.#argument("\"")
      this.#place = this.#inKey ? "colon" : "next"
      return
    }
    for (const held of quote.slice(0, this.#quote)) this.#argument(jsonUnit(held))
    this.#quote = 0
    if (unit === quote[0]) this.#quote = 1
    else this.#argument(jsonUnit(unit))
  }

  #endWord(): boolean {
    const json = wordJson(this.#bare)
    if (json === undefined) return false
    this.#argument(json)
    this.certain = true
    this.#place = "next"
    return true
  }

  #continue(unit: string): boolean {
    const inObject = this.#open.at(-1)
    if (unit === "," && inObject !== undefined) {
      this.#argument(", ")
      this.#place = inObject ? "key" : "value"
      return true
    }
    return unit === "}" ? this.#close(true) : unit === "]" ? this.#close(false) : false
  }

  #close(isObject: boolean): boolean {
    if (this.#open.at(-1) !== isObject) return false
    this.#open.pop()
    this.#argument(isObject ? "}" : "]")
    this.certain = true
    this.#place = this.#open.length === 0 ? "over" : "next"
    return true
  }
}

class GemmaReader implements CallReader {
  readonly #output: CallOutput
  readonly #object: GemmaObject
  readonly #call = new Literal("call:")
  readonly #closer = new Literal(closer)
  readonly #name = new ToolName()
  #place: "before" | "name" | "gap" | "object" | "after" = "before"

  constructor(output: CallOutput) {
    this.#output = output
    this.#object = new GemmaObject((json) => output.argument(json))
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "before": {
        if (this.#call.empty && isSpace(unit)) return "more"
        const read = this.#call.step(unit)
        if (typeof read === "string") this.#place = "name"
        return read === false ? "bad" : "more"
      }
      case "name": {
        const read = this.#name.step(unit)
        if (read !== "end") return read ? "more" : "bad"
        this.#place = "gap"
        return this.step(unit)
      }
      case "gap":
        if (isSpace(unit)) return "more"
        this.#place = "object"
        return this.step(unit)
      case "object":
        if (!this.#object.step(unit)) return "bad"
        if (!this.#output.open && this.#object.certain) this.#output.begin(this.#name.text)
        if (this.#object.done) {
          this.#output.finish(true)
          this.#place = "after"
        }
        return "more"
      case "after": {
        if (this.#closer.empty && isSpace(unit)) return "more"
        const read = this.#closer.step(unit)
        return read === false ? "bad" : read === true ? "more" : "done"
      }
    }
  }
}

/** Gemma 4: `<|tool_call>call:name{key:value}<tool_call|>`, keys bare and strings between `<|"|>`. */
export const gemma4: ToolCallSyntax = {
  name: "gemma4",
  matches: (renderedCall) => /<\|tool_call>\s*call:/.test(renderedCall),
  markers: [opener, closer, quote],
  parser: (sink) => new CallScanner(sink, { openers: new Map([[opener, (output: CallOutput) => new GemmaReader(output)]]), closer })
}
