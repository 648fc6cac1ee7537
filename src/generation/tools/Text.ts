import { isSpace } from "./JsonScanner.ts"

/** Parses JSON; undefined where it is none. */
export const parseJson = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** A UTF-16 unit as it stands in a JSON string. Surrogates stay, so that pairs survive whatever a text is cut into. */
export const jsonUnit = (unit: string): string => unit === "\"" || unit === "\\" || unit < " " ? JSON.stringify(unit).slice(1, -1) : unit

/** What most syntaxes take as the name of a tool. */
export const isNameStart = (unit: string): boolean => /^\w$/.test(unit)

export const isNamePart = (unit: string): boolean => /^[\w.:/-]$/.test(unit)

/** Reads white space and the name of a tool. */
export class ToolName {
  text = ""

  /** Takes a character: true while a name goes on like this, "end" where it is over and false where it is none, which take nothing. */
  step(unit: string): boolean | "end" {
    if (this.text === "" && isSpace(unit)) return true
    if (this.text === "" ? isNameStart(unit) : isNamePart(unit)) {
      this.text += unit
      return true
    }
    return this.text === "" ? false : "end"
  }
}

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

const words: ReadonlyMap<string, string> = new Map([
  ["true", "true"],
  ["false", "false"],
  ["null", "null"],
  ["True", "true"],
  ["False", "false"],
  ["None", "null"]
])

/** JSON of a number or a constant, which may be spelled as in Python; undefined where a word is none. */
export const wordJson = (word: string): string | undefined => words.get(word) ?? (number.test(word) ? word : undefined)

/** Reads a fixed text, white space before it allowed or not. */
export class Literal {
  readonly #texts: ReadonlyArray<string>
  #read = ""

  /** One of several; none of them begins another. */
  constructor(...texts: ReadonlyArray<string>) {
    this.#texts = texts
  }

  get empty(): boolean {
    return this.#read === ""
  }

  /** Takes a character: the text that is complete with it, true while one goes on like this, else false, which takes nothing. */
  step(unit: string): string | boolean {
    const read = this.#read + unit
    const found = this.#texts.find((text) => text.startsWith(read))
    if (found === undefined) return false
    this.#read = found === read ? "" : read
    return found === read ? found : true
  }
}
