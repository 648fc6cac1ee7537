/**
 * Text in which some ranges came from a user. `marks` is flat (start, end, start, end, …) in UTF-16 offsets: ascending, disjoint, none
 * empty, neighbours merged. A plain string is text of which nothing is marked.
 */
export class MarkedText {
  readonly text: string
  readonly marks: ReadonlyArray<number>
  constructor(text: string, marks: ReadonlyArray<number>) {
    this.text = text
    this.marks = marks
  }
}

export type Text = string | MarkedText

export const isText = (value: unknown): value is Text => typeof value === "string" || value instanceof MarkedText

export const textOf = (text: Text): string => typeof text === "string" ? text : text.text

/** `text` as a user's, all of it. */
export const mark = (text: string): Text => text === "" ? text : new MarkedText(text, [0, text.length])

/** Index of the first mark pair that ends after `offset`, times two. */
const firstMarkAfter = (marks: ReadonlyArray<number>, offset: number): number => {
  let low = 0
  let high = marks.length >> 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((marks[2 * middle + 1] ?? 0) > offset) high = middle
    else low = middle + 1
  }
  return 2 * low
}

/** Whether a user wrote any of the characters in [start, end). */
export const isMarked = (text: Text, start: number, end: number): boolean => {
  if (typeof text === "string") return false
  const first = text.marks[firstMarkAfter(text.marks, start)]
  return first !== undefined && first < end
}

/** Text put together from pieces, with their marks. */
export class TextBuilder {
  readonly #parts: Array<string> = []
  readonly #marks: Array<number> = []
  length = 0

  push(piece: Text): void {
    if (typeof piece === "string") {
      this.#parts.push(piece)
      this.length += piece.length
      return
    }
    const marks = this.#marks
    for (let i = 0; i < piece.marks.length; i += 2) {
      const start = this.length + (piece.marks[i] ?? 0)
      const end = this.length + (piece.marks[i + 1] ?? 0)
      if (marks.length > 0 && marks[marks.length - 1] === start) marks[marks.length - 1] = end
      else marks.push(start, end)
    }
    this.#parts.push(piece.text)
    this.length += piece.text.length
  }

  finish(): Text {
    const text = this.#parts.length === 1 ? this.#parts[0] ?? "" : this.#parts.join("")
    return this.#marks.length === 0 ? text : new MarkedText(text, this.#marks)
  }
}

export const concat = (...pieces: ReadonlyArray<Text>): Text => join(pieces, "")

export const join = (pieces: ReadonlyArray<Text>, separator: Text): Text => {
  const builder = new TextBuilder()
  for (let i = 0; i < pieces.length; i++) {
    if (i > 0 && separator !== "") builder.push(separator)
    builder.push(pieces[i] ?? "")
  }
  return builder.finish()
}

/** UTF-16 offsets, both inside the text. */
export const slice = (text: Text, start: number, end: number = textOf(text).length): Text => {
  if (typeof text === "string") return text.slice(start, end)
  if (end <= start) return ""
  if (start === 0 && end === text.text.length) return text
  const marks: Array<number> = []
  for (let i = firstMarkAfter(text.marks, start); i < text.marks.length; i += 2) {
    const from = text.marks[i] ?? 0
    if (from >= end) break
    marks.push(Math.max(from, start) - start, Math.min(text.marks[i + 1] ?? 0, end) - start)
  }
  const part = text.text.slice(start, end)
  return marks.length === 0 ? part : new MarkedText(part, marks)
}

/** Applies a change of characters to each stretch by itself, so that the marks stay where they were. */
export const mapText = (text: Text, change: (stretch: string) => string): Text => {
  if (typeof text === "string") return change(text)
  if (text.marks.length === 2 && text.marks[0] === 0 && text.marks[1] === text.text.length) return mark(change(text.text))
  const builder = new TextBuilder()
  let offset = 0
  for (let i = 0; i < text.marks.length; i += 2) {
    const start = text.marks[i] ?? 0
    const end = text.marks[i + 1] ?? 0
    builder.push(change(text.text.slice(offset, start)))
    builder.push(mark(change(text.text.slice(start, end))))
    offset = end
  }
  builder.push(change(text.text.slice(offset)))
  return builder.finish()
}

const surrogate = /[\ud800-\udfff]/

/** Length in code points, Python's `len`. */
export const codePointLength = (text: string): number => {
  if (!surrogate.test(text)) return text.length
  let count = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) i++
    count++
  }
  return count
}

/** Offsets of all code points and the end; undefined when they are the UTF-16 offsets themselves. */
const codePointOffsets = (text: string): ReadonlyArray<number> | undefined => {
  if (!surrogate.test(text)) return undefined
  const offsets: Array<number> = []
  let offset = 0
  for (const character of text) {
    offsets.push(offset)
    offset += character.length
  }
  offsets.push(offset)
  return offsets
}

/** UTF-16 offset of a code point index that is between 0 and the length. */
export const offsetOfCodePoint = (text: string): (index: number) => number => {
  const offsets = codePointOffsets(text)
  return offsets === undefined ? (index) => index : (index) => offsets[index] ?? text.length
}

export const characters = (text: Text): Array<Text> => {
  const result: Array<Text> = []
  let offset = 0
  for (const character of textOf(text)) {
    result.push(typeof text === "string" ? character : slice(text, offset, offset + character.length))
    offset += character.length
  }
  return result
}
