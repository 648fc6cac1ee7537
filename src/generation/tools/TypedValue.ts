import { typedJson, type Types } from "../../domain/ToolParameters.ts"
import { escapedControl } from "./JsonCall.ts"
import { isSpace, JsonScanner } from "./JsonScanner.ts"

/** Characters after which an object or an array is taken as one for good; until then what is no JSON after all can be a string. */
const sure = 128

/**
 * A value that stands between tags as text and may be of another type than string: an object or an array is handed on as it comes once there is
 * enough of it, and everything else when it is whole.
 */
export class TypedValue {
  readonly #types: Types
  readonly #argument: (json: string) => void
  /** Absent where only the whole text says what the value is. */
  #scanner: JsonScanner | undefined
  #text = ""
  #state: "waiting" | "streaming" | "broken" = "waiting"

  constructor(types: Types, argument: (json: string) => void) {
    this.#types = types
    this.#argument = argument
    // Where a string may stand, what begins as an object may be one.
    if (!types.has("string")) this.#scanner = new JsonScanner()
  }

  add(text: string): void {
    for (let i = 0; i < text.length; i++) this.#step(text.charAt(i))
  }

  /** The value is over. False where it was begun as JSON and is none. */
  finish(): boolean {
    if (this.#state === "waiting") {
      this.#argument(typedJson(this.#text, this.#types))
      return true
    }
    return this.#state === "streaming" && this.#isWhole
  }

  get #isWhole(): boolean {
    return this.#scanner?.depth === 0 && this.#scanner.afterValue
  }

  #step(unit: string): void {
    const inString = this.#scanner?.inString === true
    const taken = this.#state !== "broken" && this.#scan(unit)
    if (this.#state === "waiting") {
      this.#text += unit
      if (!taken || (inString && unit < " ")) this.#scanner = undefined
      if (this.#scanner === undefined || this.#text.length < sure || this.#isWhole) return
      this.#state = "streaming"
      this.#argument(this.#text.trimStart())
      this.#text = ""
      return
    }
    if (!taken) this.#state = "broken"
    if (this.#state === "broken" || !this.#isWhole || !isSpace(unit)) this.#argument(inString ? escapedControl(unit) : unit)
  }

  #scan(unit: string): boolean {
    const scanner = this.#scanner
    if (scanner === undefined) return false
    if (this.#isWhole) return isSpace(unit)
    if (scanner.depth === 0 && !isSpace(unit) && unit !== "{" && unit !== "[") return false
    return scanner.step(unit)
  }
}
