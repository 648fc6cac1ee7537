/** The body is no JSON, or no JSON that this server takes; `message` says which. */
export class JsonError extends Error {}

/** What a document may be. */
export interface JsonBounds {
  /** Levels of lists and objects. */
  readonly depth: number
  /** Lists, objects, texts and members of objects in all: what a schema looks at one by one. */
  readonly values: number
}

/** Bytes that the native parser gets at a time. */
const pieceBytes = 64 * 1024

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openList = 0x5b
const backslash = 0x5c
const closeList = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

const isBlank = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const endsScalar = (byte: number) => byte === comma || byte === closeList || byte === closeObject || isBlank(byte)

const invalid = () => new JsonError("The request body is not valid JSON.")

/** Adds a member as JSON.parse does: always as a property of the object's own. */
const define = (object: Record<string, unknown>, name: string, value: unknown): void => {
  if (name === "__proto__") Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}

/** Values that count towards the bound. */
const countValues = (value: unknown): number => {
  if (typeof value === "string") return 1
  if (typeof value !== "object" || value === null) return 0
  let count = 1
  if (Array.isArray(value)) { for (const item of value) if (typeof item !== "number") count += countValues(item) }
  else for (const member of Object.values(value)) count += 1 + countValues(member)
  return count
}

class LargeJson {
  private readonly bytes: Buffer
  private readonly decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  private readonly bounds: JsonBounds
  private values = 0
  private at: number

  constructor(bytes: Uint8Array, bounds: JsonBounds) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.bounds = bounds
    this.at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  }

  *document(): Generator<void, unknown> {
    yield* this.blank()
    const value = yield* this.value(0)
    yield* this.blank()
    if (this.at < this.bytes.length) throw invalid()
    return value
  }

  private *value(depth: number): Generator<void, unknown> {
    const end = this.valueEnd(this.at, this.at + pieceBytes, depth)
    if (end !== undefined) return this.native("", this.at, this.at = end, "")
    switch (this.bytes[this.at]) {
      case quote:
        return yield* this.text()
      case openList:
        return yield* this.list(depth + 1)
      case openObject:
        return yield* this.object(depth + 1)
      default:
        throw new JsonError("The request body holds a number that is too long.")
    }
  }

  private *list(depth: number): Generator<void, Array<unknown>> {
    const list: Array<unknown> = []
    yield* this.members(closeList, depth, {
      end: (from, limit) => this.valueEnd(from, limit, depth),
      batch: (from, to) => {
        const batch = this.native("[", from, to, "]")
        if (Array.isArray(batch)) { for (const value of batch) list.push(value) }
      },
      large: function*(this: LargeJson): Generator<void> {
        list.push(yield* this.value(depth))
      }.bind(this)
    })
    return list
  }

  private *object(depth: number): Generator<void, Record<string, unknown>> {
    const object: Record<string, unknown> = {}
    yield* this.members(closeObject, depth, {
      end: (from, limit) => this.memberEnd(from, limit, depth),
      batch: (from, to) => {
        const batch = this.native("{", from, to, "}")
        if (typeof batch === "object" && batch !== null) { for (const [name, value] of Object.entries(batch)) define(object, name, value) }
      },
      large: function*(this: LargeJson): Generator<void> {
        if (this.bytes[this.at] !== quote) throw invalid()
        const name = yield* this.text()
        yield* this.blank()
        if (this.bytes[this.at] !== colon) throw invalid()
        this.at++
        yield* this.blank()
        define(object, name, yield* this.value(depth))
      }.bind(this)
    })
    return object
  }

  /** Everything between the brackets of a container: as many members at a time as fit a piece, and those that are larger one by one. */
  private *members(close: number, depth: number, member: {
    readonly end: (from: number, limit: number) => number | undefined
    readonly batch: (from: number, to: number) => void
    readonly large: () => Generator<void>
  }): Generator<void> {
    if (depth > this.bounds.depth) throw this.tooDeep()
    this.at++
    yield* this.blank()
    if (this.bytes[this.at] === close) return void this.at++
    let from = this.at
    let to = this.at
    while (true) {
      const end = member.end(this.at, from + pieceBytes)
      if (end !== undefined) this.at = to = end
      else {
        if (to > from) member.batch(from, to)
        yield
        from = this.at
        const alone = to > from ? undefined : member.end(from, from + pieceBytes)
        if (alone !== undefined) this.at = to = alone
        else {
          yield* member.large()
          to = from = this.at
        }
      }
      yield* this.blank()
      const byte = this.bytes[this.at]
      if (byte !== close && byte !== comma) throw invalid()
      if (byte === close || to === from) {
        if (to > from) member.batch(from, to)
        this.at++
        if (byte === close) return
        yield* this.blank()
        to = from = this.at
      } else {
        this.at++
        yield* this.blank()
      }
      if (!this.startsValue(this.bytes[this.at])) throw invalid()
    }
  }

  private startsValue(byte: number | undefined): boolean {
    return byte !== undefined && byte !== comma && byte !== colon && byte !== closeList && byte !== closeObject
  }

  private *blank(): Generator<void> {
    const { bytes } = this
    let { at } = this
    let limit = at + 4 * pieceBytes
    while (isBlank(bytes[at])) {
      if (++at === limit) {
        limit += 4 * pieceBytes
        yield
      }
    }
    this.at = at
  }

  /** A string of any length, a piece at a time. */
  private *text(): Generator<void, string> {
    const { bytes } = this
    const pieces: Array<string> = []
    let from = this.at + 1
    while (true) {
      const end = this.stringEnd(from - 1, from + pieceBytes)
      if (end !== undefined) {
        pieces.push(this.nativeText(from, end - 1))
        this.at = end
        return pieces.join("")
      }
      if (from + pieceBytes >= bytes.length) throw invalid()
      const to = this.pieceEnd(from, from + pieceBytes)
      pieces.push(this.nativeText(from, to))
      from = to
      yield
    }
  }

  /** The end of a piece of a string that cuts neither a character nor an escape sequence. */
  private pieceEnd(from: number, limit: number): number {
    const { bytes } = this
    let to = limit
    while (to > limit - 4 && ((bytes[to] ?? 0) & 0xc0) === 0x80) to--
    let escape = to - 1
    while (escape >= from && escape >= to - 6 && bytes[escape] !== backslash) escape--
    if (bytes[escape] !== backslash) return to
    let run = escape
    while (run > from && bytes[run - 1] === backslash) run--
    if ((escape - run) % 2 === 1) return to
    const length = bytes[escape + 1] === 0x75 ? 6 : 2
    return escape + length > to ? escape : to
  }

  private nativeText(from: number, to: number): string {
    const text = this.native("\"", from, to, "\"")
    if (typeof text !== "string") throw invalid()
    return text
  }

  private native(before: string, from: number, to: number, after: string): unknown {
    let text: string
    try {
      text = this.decoder.decode(this.bytes.subarray(from, to))
    } catch {
      throw new JsonError("The request body is not valid UTF-8.")
    }
    let value: unknown
    try {
      value = JSON.parse(before + text + after)
    } catch {
      throw invalid()
    }
    this.values += countValues(value)
    if (this.values > this.bounds.values) {
      throw new JsonError(`The request body holds more than ${this.bounds.values} lists, objects, texts and members.`)
    }
    return value
  }

  private memberEnd(from: number, limit: number, depth: number): number | undefined {
    const { bytes } = this
    if (bytes[from] !== quote) throw invalid()
    let at = this.stringEnd(from, limit)
    if (at === undefined) return undefined
    while (at < limit && isBlank(bytes[at])) at++
    if (at >= limit) return undefined
    if (bytes[at] !== colon) throw invalid()
    at++
    while (at < limit && isBlank(bytes[at])) at++
    return at >= limit ? undefined : this.valueEnd(at, limit, depth)
  }

  /** Where the value that starts at `from` ends; undefined where that is not before `limit`. */
  private valueEnd(from: number, limit: number, depth: number): number | undefined {
    const { bytes } = this
    const first = bytes[from]
    if (first === quote) return this.stringEnd(from, limit)
    const stop = Math.min(limit, bytes.length)
    let at = from
    if (first !== openList && first !== openObject) {
      while (at < stop && !endsScalar(bytes[at] ?? 0)) at++
      return at < stop || stop === bytes.length ? at : undefined
    }
    let level = depth
    while (at < stop) {
      const byte = bytes[at]
      if (byte === quote) {
        const end = this.stringEnd(at, limit)
        if (end === undefined) return undefined
        at = end
        continue
      }
      if (byte === openList || byte === openObject) {
        if (++level > this.bounds.depth) throw this.tooDeep()
      } else if ((byte === closeList || byte === closeObject) && --level === depth) return at + 1
      at++
    }
    return undefined
  }

  /** Where the string whose quote is at `from` ends; undefined where that is not before `limit`. */
  private stringEnd(from: number, limit: number): number | undefined {
    const { bytes } = this
    const near = Math.min(from + 48, limit, bytes.length)
    let at = from + 1
    while (at < near) {
      const byte = bytes[at]
      if (byte === quote) return at + 1
      at += byte === backslash ? 2 : 1
    }
    while (at < limit) {
      const end = bytes.indexOf(quote, at)
      if (end < 0 || end >= limit) return undefined
      let escape = end
      while (escape > at && bytes[escape - 1] === backslash) escape--
      at = end + 1
      if ((end - escape) % 2 === 0) return at
    }
    return undefined
  }

  private tooDeep(): JsonError {
    return new JsonError(`The request body nests deeper than ${this.bounds.depth} levels.`)
  }
}

/**
 * Parses JSON (UTF-8) as `JSON.parse` does, but in steps of well under a millisecond: each `next` of the generator is one. Throws a
 * `JsonError`. The native parser does the work, on pieces that end where a member of a list or object does.
 */
export const parseLarge = (bytes: Uint8Array, bounds: JsonBounds): Generator<void, unknown> => new LargeJson(bytes, bounds).document()
