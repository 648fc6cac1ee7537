/** What a piece of output became: text that is safe to send, and the stop string that ended the output, which is not in the text. */
export interface StopResult {
  readonly text: string
  readonly matched?: string
}

/**
 * Looks for stop strings in streamed text. Exactly the text that may still become one is held back. Of several stop strings the one that
 * is complete first wins, and among those that end at the same character the longest. After a match everything is swallowed.
 */
export interface StopStrings {
  readonly push: (text: string) => StopResult
  /** Characters that are held back; after a match the stop string and what came with it. */
  readonly heldLength: () => number
  /** The output is over: what was held back. */
  readonly end: () => string
}

/**
 * Stop strings that cannot occur in text, empty ones and those with half a surrogate pair, are ignored. Time and memory are linear in the
 * text and in the stop strings, whatever they are.
 */
export const make = (stops: ReadonlyArray<string>): StopStrings => {
  const matchers = stops.filter((stop) => stop !== "" && stop.isWellFormed()).map((stop) => new Matcher(stop))
  const held = new HeldText()
  let over = false
  return {
    push: (text) => {
      if (over) return { text: "" }
      if (matchers.length === 0) return { text }
      const before = held.length
      held.push(text)
      for (let i = 0; i < text.length; i++) {
        const unit = text.charCodeAt(i)
        let matched = ""
        for (const matcher of matchers) {
          if (matcher.step(unit) && matcher.stop.length > matched.length) matched = matcher.stop
        }
        if (matched !== "") {
          over = true
          return { text: held.take(before + i + 1 - matched.length), matched }
        }
      }
      let longest = 0
      for (const matcher of matchers) longest = Math.max(longest, matcher.length)
      return { text: held.take(held.length - longest) }
    },
    heldLength: () => held.length,
    end: () => {
      const rest = over ? "" : held.take(held.length)
      over = true
      return rest
    }
  }
}

/** One stop string as the automaton of Knuth, Morris and Pratt. */
class Matcher {
  readonly stop: string
  /** How many characters of the stop string the text ends with. */
  length = 0
  /** For each prefix length, the length of its longest border. */
  readonly #borders: Int32Array

  constructor(stop: string) {
    this.stop = stop
    this.#borders = new Int32Array(stop.length + 1)
    let border = 0
    for (let i = 1; i < stop.length; i++) {
      while (border > 0 && stop.charCodeAt(i) !== stop.charCodeAt(border)) border = this.#borders[border] ?? 0
      if (stop.charCodeAt(i) === stop.charCodeAt(border)) border++
      this.#borders[i + 1] = border
    }
  }

  /** Takes the next UTF-16 unit; true where the stop string is complete. */
  step(unit: number): boolean {
    while (this.length > 0 && unit !== this.stop.charCodeAt(this.length)) this.length = this.#borders[this.length] ?? 0
    if (unit === this.stop.charCodeAt(this.length)) this.length++
    return this.length === this.stop.length
  }
}

/** A queue of text that is taken from the front in pieces of any length without being copied as a whole. */
class HeldText {
  length = 0
  #chunks: Array<string> = []
  #first = 0
  /** Characters of the first chunk that are taken already. */
  #taken = 0

  push(text: string): void {
    if (text === "") return
    this.#chunks.push(text)
    this.length += text.length
  }

  take(count: number): string {
    let text = ""
    this.length -= count
    for (let wanted = count; wanted > 0;) {
      const part = (this.#chunks[this.#first] ?? "").slice(this.#taken, this.#taken + wanted)
      text += part
      wanted -= part.length
      this.#taken += part.length
      if (this.#taken === this.#chunks[this.#first]?.length) {
        this.#first++
        this.#taken = 0
      }
    }
    if (this.#first * 2 >= this.#chunks.length) {
      this.#chunks = this.#chunks.slice(this.#first)
      this.#first = 0
    }
    return text
  }
}
