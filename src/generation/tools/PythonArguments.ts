import { isSpace } from "./JsonScanner.ts"
import { jsonUnit, wordJson } from "./Text.ts"

const escapes: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  "\"": "\"",
  a: "\u0007",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  0: "\0"
}

const codeLengths: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 }

const closers = { call: ")", tuple: ")", dict: "}", list: "]" } as const

type Frame = keyof typeof closers

type Place =
  | "nameOrEnd"
  | "inName"
  | "keyOrEnd"
  | "colon"
  | "value"
  | "valueOrEnd"
  | "word"
  | "quote"
  | "quotes"
  | "string"
  | "escape"
  | "code"
  | "next"
  | "over"

/** Reads the keyword arguments of a Python call, from its parenthesis on, into a JSON object. Values are literals; there are no expressions. */
export class PythonArguments {
  readonly #argument: (json: string) => void
  readonly #open: Array<Frame> = []
  #place: Place = "value"
  #bare = ""
  #quote = ""
  /** The string has three quotes on both sides; so many of the last ones have come. */
  #triple = false
  #ends = 0
  #codeLength = 0
  #inKey = false
  /** A comma has come, and what follows it has not. */
  #comma = false
  /** A string has begun as a value, or a value of another kind is whole. */
  certain = false

  constructor(argument: (json: string) => void) {
    this.#argument = argument
  }

  get done(): boolean {
    return this.#place === "over"
  }

  /** Takes a character; false where no call goes on like this, which takes nothing. */
  step(unit: string): boolean {
    if (this.#comma && !isSpace(unit)) {
      // A last comma before the closing bracket says nothing.
      this.#comma = false
      if (!")]}".includes(unit)) this.#argument(", ")
    }
    switch (this.#place) {
      case "value":
      case "valueOrEnd":
        return isSpace(unit) || this.#beginValue(unit)
      case "nameOrEnd":
        return isSpace(unit) || this.#beginName(unit)
      case "inName":
        return this.#stepName(unit)
      case "keyOrEnd":
        if (isSpace(unit)) return true
        if (unit === "}") return this.#close(unit)
        return this.#beginString(unit, true)
      case "colon":
        if (isSpace(unit)) return true
        if (unit !== ":") return false
        this.#argument(": ")
        this.#place = "value"
        return true
      case "word":
        if (/^[\w.+-]$/.test(unit)) {
          this.#bare += unit
          return true
        }
        return this.#endWord() && this.step(unit)
      case "quote":
      case "quotes":
        return this.#stepQuotes(unit)
      case "string":
        this.#stepString(unit)
        return true
      case "escape":
        return this.#stepEscape(unit)
      case "code":
        return this.#stepCode(unit)
      case "next":
        return isSpace(unit) || this.#continue(unit)
      case "over":
        return false
    }
  }

  #beginValue(unit: string): boolean {
    const frame = this.#open.at(-1)
    if (frame === undefined) return unit === "(" && this.#push("call", "nameOrEnd")
    if (this.#place === "valueOrEnd" && unit === closers[frame]) return this.#close(unit)
    if (unit === "{") return this.#push("dict", "keyOrEnd")
    if (unit === "[") return this.#push("list", "valueOrEnd")
    if (unit === "(") return this.#push("tuple", "valueOrEnd")
    if (unit === "\"" || unit === "'") return this.#beginString(unit, false)
    this.#bare = unit
    this.#place = "word"
    return /^[-\dTFNtfn]$/.test(unit)
  }

  #push(frame: Frame, place: Place): true {
    this.#open.push(frame)
    this.#argument(frame === "call" || frame === "dict" ? "{" : "[")
    this.#place = place
    return true
  }

  #beginName(unit: string): boolean {
    if (unit === ")") return this.#close(unit)
    this.#bare = unit
    this.#place = "inName"
    return /^[A-Za-z_]$/.test(unit)
  }

  #stepName(unit: string): boolean {
    if (/^\w$/.test(unit)) {
      this.#bare += unit
      return !this.#bare.includes(" ")
    }
    if (isSpace(unit)) {
      this.#bare += " "
      return true
    }
    this.#argument(`${JSON.stringify(this.#bare.trimEnd())}: `)
    this.#place = "value"
    return unit === "="
  }

  #beginString(unit: string, inKey: boolean): boolean {
    this.#quote = unit
    this.#inKey = inKey
    this.#place = "quote"
    return unit === "\"" || unit === "'"
  }

  /** After the first quote, and after a second one. */
  #stepQuotes(unit: string): boolean {
    if (unit === this.#quote && this.#place === "quote") {
      this.#place = "quotes"
      return true
    }
    const empty = this.#place === "quotes" && unit !== this.#quote
    this.#triple = this.#place === "quotes" && !empty
    this.#argument("\"")
    if (!this.#inKey) this.certain = true
    if (empty) this.#endString()
    else this.#place = "string"
    return this.#triple || this.step(unit)
  }

  #stepString(unit: string): void {
    if (unit === this.#quote) {
      if (!this.#triple) return this.#endString()
      if (++this.#ends === 3) this.#endString()
      return
    }
    for (; this.#ends > 0; this.#ends--) this.#argument(jsonUnit(this.#quote))
    if (unit === "\\") this.#place = "escape"
    else this.#argument(jsonUnit(unit))
  }

  #endString(): void {
    this.#ends = 0
    this.#argument("\"")
    this.#place = this.#inKey ? "colon" : "next"
  }

  #stepEscape(unit: string): boolean {
    const length = codeLengths[unit]
    if (length !== undefined) {
      this.#bare = ""
      this.#codeLength = length
      this.#place = "code"
      return true
    }
    if (unit === "N" || /^[1-7]$/.test(unit)) return false
    const text = escapes[unit] ?? `\\${unit}`
    for (const own of text) this.#argument(jsonUnit(own))
    this.#place = "string"
    return true
  }

  #stepCode(unit: string): boolean {
    if (!/^[\da-fA-F]$/.test(unit)) return false
    this.#bare += unit
    if (this.#bare.length < this.#codeLength) return true
    const code = Number.parseInt(this.#bare, 16)
    if (code > 0x10ffff) return false
    // A lone surrogate is written as an escape; JSON knows those too.
    this.#argument(code >= 0xd800 && code < 0xe000 ? `\\u${this.#bare.slice(-4)}` : JSON.stringify(String.fromCodePoint(code)).slice(1, -1))
    this.#place = "string"
    return true
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
    const frame = this.#open.at(-1)
    if (frame === undefined) return false
    if (unit === closers[frame]) return this.#close(unit)
    if (unit !== ",") return false
    this.#comma = true
    this.#place = frame === "call" ? "nameOrEnd" : frame === "dict" ? "keyOrEnd" : "valueOrEnd"
    return true
  }

  #close(unit: string): boolean {
    const frame = this.#open.pop()
    this.#argument(frame === "call" || frame === "dict" ? "}" : "]")
    this.certain = true
    this.#place = this.#open.length === 0 ? "over" : "next"
    return frame !== undefined && unit === closers[frame]
  }
}
