type State =
  | "value"
  | "valueOrEnd"
  | "key"
  | "keyOrEnd"
  | "colon"
  | "next"
  | "string"
  | "escape"
  | "hex"
  | "minus"
  | "zero"
  | "integer"
  | "point"
  | "fraction"
  | "exponent"
  | "exponentSign"
  | "exponentDigits"
  | "literal"

/** JSON's white space, and the white space that separates calls from text. */
export const isSpace = (unit: string): boolean => unit === " " || unit === "\n" || unit === "\r" || unit === "\t"

const isDigit = (unit: string): boolean => unit >= "0" && unit <= "9"

const isHexDigit = (unit: string): boolean => isDigit(unit) || (unit >= "a" && unit <= "f") || (unit >= "A" && unit <= "F")

/**
 * Reads one JSON value (RFC 8259), a character at a time, without building it. One deviation: control characters in strings pass, since models
 * write line breaks there; `inString` tells where.
 */
export class JsonScanner {
  /** Open objects and arrays, true for objects. */
  readonly #open: Array<boolean> = []
  #state: State = "value"
  #isKey = false
  #rest = ""
  #hexDigits = 0

  /** How many objects and arrays are open. */
  get depth(): number {
    return this.#open.length
  }

  get inString(): boolean {
    return this.#state === "string" || this.#state === "escape" || this.#state === "hex"
  }

  /** In the string of a key, its first quote read and its last one not. */
  get inKey(): boolean {
    return this.#isKey && this.inString
  }

  /** The next character that is not white space begins a value. */
  get beforeValue(): boolean {
    return this.#state === "value" || this.#state === "valueOrEnd"
  }

  get beforeKey(): boolean {
    return this.#state === "key" || this.#state === "keyOrEnd"
  }

  /** An object was opened, and nothing of it has come yet. */
  get inEmptyObject(): boolean {
    return this.#state === "keyOrEnd"
  }

  /** A value just ended. A number ends with the character after it. */
  get afterValue(): boolean {
    return this.#state === "next"
  }

  /** Takes the next character; false where no JSON text goes on like this, which takes nothing. */
  step(unit: string): boolean {
    switch (this.#state) {
      case "string":
        if (unit === "\"") this.#state = this.#isKey ? "colon" : "next"
        else if (unit === "\\") this.#state = "escape"
        return true
      case "escape":
        if (unit === "u") {
          this.#state = "hex"
          this.#hexDigits = 0
          return true
        }
        if (!"\"\\/bfnrt".includes(unit)) return false
        this.#state = "string"
        return true
      case "hex":
        if (!isHexDigit(unit)) return false
        if (++this.#hexDigits === 4) this.#state = "string"
        return true
      case "literal":
        if (!this.#rest.startsWith(unit)) return false
        this.#rest = this.#rest.slice(1)
        if (this.#rest === "") this.#state = "next"
        return true
      case "colon":
        if (isSpace(unit)) return true
        if (unit !== ":") return false
        this.#state = "value"
        return true
      case "key":
      case "keyOrEnd":
        return isSpace(unit) || this.#beginKey(unit)
      case "value":
      case "valueOrEnd":
        return isSpace(unit) || this.#beginValue(unit)
      case "next":
        return isSpace(unit) || this.#continue(unit)
      default:
        return this.#number(unit)
    }
  }

  #beginKey(unit: string): boolean {
    if (unit === "}" && this.#state === "keyOrEnd") return this.#close(true)
    if (unit !== "\"") return false
    this.#state = "string"
    this.#isKey = true
    return true
  }

  #beginValue(unit: string): boolean {
    if (unit === "]" && this.#state === "valueOrEnd") return this.#close(false)
    switch (unit) {
      case "{":
      case "[":
        this.#open.push(unit === "{")
        this.#state = unit === "{" ? "keyOrEnd" : "valueOrEnd"
        return true
      case "\"":
        this.#state = "string"
        this.#isKey = false
        return true
      case "-":
        this.#state = "minus"
        return true
      case "0":
        this.#state = "zero"
        return true
      case "t":
      case "f":
      case "n":
        this.#rest = unit === "t" ? "rue" : unit === "f" ? "alse" : "ull"
        this.#state = "literal"
        return true
      default:
        if (!isDigit(unit)) return false
        this.#state = "integer"
        return true
    }
  }

  #continue(unit: string): boolean {
    const inObject = this.#open.at(-1)
    if (unit === "," && inObject !== undefined) {
      this.#state = inObject ? "key" : "value"
      return true
    }
    return unit === "}" ? this.#close(true) : unit === "]" ? this.#close(false) : false
  }

  #close(isObject: boolean): boolean {
    if (this.#open.at(-1) !== isObject) return false
    this.#open.pop()
    this.#state = "next"
    return true
  }

  #number(unit: string): boolean {
    const state = this.#state
    if (isDigit(unit)) {
      if (state === "zero") return false
      this.#state = state === "minus"
        ? unit === "0" ? "zero" : "integer"
        : state === "point"
        ? "fraction"
        : state === "exponent" || state === "exponentSign"
        ? "exponentDigits"
        : state
      return true
    }
    if (unit === "." && (state === "zero" || state === "integer")) {
      this.#state = "point"
      return true
    }
    if ((unit === "e" || unit === "E") && (state === "zero" || state === "integer" || state === "fraction")) {
      this.#state = "exponent"
      return true
    }
    if ((unit === "+" || unit === "-") && state === "exponent") {
      this.#state = "exponentSign"
      return true
    }
    if (state === "minus" || state === "point" || state === "exponent" || state === "exponentSign") return false
    this.#state = "next"
    if (isSpace(unit) || this.#continue(unit)) return true
    this.#state = state
    return false
  }
}
