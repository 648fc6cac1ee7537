import { isSpace } from "./JsonScanner.ts"

export interface MarkupValueOptions {
  readonly closer: string
  /** What comes after the closer, white space between. A closer without one of them is part of the value. */
  readonly followers: ReadonlyArray<string>
  /** One line break after the opening tag and one before the closer belong to the markup. */
  readonly lines: boolean
  readonly onText: (text: string) => void
}

/**
 * A value that stands between tags as it is, without any escaping: it ends at the first closer that is followed as a closer is. Exactly what may
 * still be the closer is held back. No closer or follower has its first character twice.
 */
export class MarkupValue {
  readonly #options: MarkupValueOptions
  #place: "start" | "text" | "line" | "closer" | "after" = "start"
  /** What may be the end of the value: a line break, the closer, white space. */
  #held = ""
  #closer = 0
  /** The beginning of a follower. */
  #follower = ""

  constructor(options: MarkupValueOptions) {
    this.#options = options
  }

  /** Takes a character: the follower that is complete with it, else undefined. */
  step(unit: string): string | undefined {
    const { closer, lines } = this.#options
    switch (this.#place) {
      case "start":
        this.#place = "text"
        return lines && unit === "\n" ? undefined : this.step(unit)
      case "text":
        if (lines && unit === "\n") this.#hold("line", unit)
        else if (unit === closer[0]) this.#hold("closer", unit)
        else this.#options.onText(unit)
        return undefined
      case "line":
        if (unit !== closer[0]) return this.#release(unit)
        this.#hold("closer", unit)
        return undefined
      case "closer":
        if (closer[this.#closer] !== unit) return this.#release(unit)
        this.#hold(++this.#closer === closer.length ? "after" : "closer", unit)
        return undefined
      case "after":
        return this.#stepAfter(unit)
    }
  }

  #hold(place: "line" | "closer" | "after", unit: string): void {
    if (place === "closer" && this.#place !== "closer") this.#closer = 1
    this.#place = place
    this.#held += unit
  }

  #release(unit: string): string | undefined {
    this.#options.onText(this.#held)
    this.#held = ""
    this.#place = "text"
    return this.step(unit)
  }

  #stepAfter(unit: string): string | undefined {
    if (this.#follower === "" && isSpace(unit)) {
      this.#held += unit
      return undefined
    }
    const tag = this.#follower + unit
    const found = this.#options.followers.find((text) => text.startsWith(tag))
    if (found !== undefined) {
      this.#follower = tag
      return found === tag ? found : undefined
    }
    // What came after the closer may be the beginning of another one, and the line break before it belongs to that.
    const line = this.#options.lines && this.#held.endsWith("\n") ? "\n" : ""
    this.#options.onText(this.#held.slice(0, this.#held.length - line.length))
    this.#held = ""
    this.#follower = ""
    this.#place = "text"
    for (const again of line + tag) this.step(again)
    return undefined
  }
}
