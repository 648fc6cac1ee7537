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
