import { isUtf8 } from "node:buffer"
import { readSync } from "node:fs"
import { ModelError } from "../domain/Errors.ts"

const windowBytes = 256 * 1024
const batchBytes = 32 * 1024

// V8 copies substrings below this length; longer ones would keep the whole batch alive.
const slicedFrom = 13

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80

/**
 * Little-endian reads of a GGUF header through a window over the file. Every length is compared with the bytes that are left before
 * anything is allocated. Throws {@link ModelError}; `subject` (the key or tensor being read) goes into it.
 */
export class GgufCursor {
  subject: string | undefined
  readonly size: number
  readonly #fd: number
  #window: Buffer
  /** File offset of the window's first byte. */
  #base = 0
  #filled = 0
  /** Read position inside the window. */
  #at = 0

  constructor(fd: number, size: number) {
    this.#fd = fd
    this.size = size
    this.#window = Buffer.allocUnsafe(Math.min(windowBytes, Math.max(size, 1)))
  }

  get position(): number {
    return this.#base + this.#at
  }

  get remaining(): number {
    return this.size - this.position
  }

  fail(reason: ModelError["reason"], what: string): never {
    throw modelError(reason, this.subject === undefined ? what : `${printable(this.subject)}: ${what}`, this.subject)
  }

  u8(): number {
    return this.#window.readUInt8(this.#take(1))
  }

  i8(): number {
    return this.#window.readInt8(this.#take(1))
  }

  u16(): number {
    return this.#window.readUInt16LE(this.#take(2))
  }

  i16(): number {
    return this.#window.readInt16LE(this.#take(2))
  }

  u32(): number {
    return this.#window.readUInt32LE(this.#take(4))
  }

  i32(): number {
    return this.#window.readInt32LE(this.#take(4))
  }

  f32(): number {
    return this.#window.readFloatLE(this.#take(4))
  }

  f64(): number {
    return this.#window.readDoubleLE(this.#take(8))
  }

  i64(): number {
    return Number(this.#window.readBigInt64LE(this.#take(8)))
  }

  /** Above 2^53 the value is rounded; every use compares it with something far smaller. */
  u64(): number {
    const at = this.#take(8)
    return this.#window.readUInt32LE(at + 4) * 0x1_0000_0000 + this.#window.readUInt32LE(at)
  }

  /** A string of at most `limit` bytes, which must be UTF-8. */
  string(limit: number): string {
    return this.#text(this.#stringLength(limit))
  }

  /** Strings of at most `limit` bytes each. Short ones are decoded many at a time: a call into the runtime costs more than they do. */
  strings(count: number, limit: number): Array<string> {
    const strings: Array<string> = []
    const batch = Buffer.allocUnsafe(batchBytes)
    let bytes = 0
    let units = 0
    let byteEnds: Array<number> = []
    let unitEnds: Array<number> = []
    const flush = () => {
      if (!isUtf8(batch.subarray(0, bytes))) this.fail("Invalid", "text that is not UTF-8")
      const text = batch.toString("utf8", 0, bytes)
      for (let i = 0; i < unitEnds.length; i++) {
        const start = unitEnds[i - 1] ?? 0
        const end = unitEnds[i] ?? 0
        strings.push(end - start < slicedFrom ? text.slice(start, end) : batch.toString("utf8", byteEnds[i - 1] ?? 0, byteEnds[i]))
      }
      bytes = 0
      units = 0
      byteEnds = []
      unitEnds = []
    }
    for (let i = 0; i < count; i++) {
      const length = this.#stringLength(limit)
      if (bytes + length > batchBytes) flush()
      if (length > batchBytes) {
        strings.push(this.#text(length))
        continue
      }
      const at = this.#take(length)
      const window = this.#window
      if (length > 0 && isContinuation(window[at] ?? 0)) this.fail("Invalid", "text that is not UTF-8")
      for (let from = at; from < at + length; from++) {
        const byte = window[from] ?? 0
        batch[bytes++] = byte
        if (!isContinuation(byte)) units += byte >= 0xf0 ? 2 : 1
      }
      byteEnds.push(bytes)
      unitEnds.push(units)
    }
    flush()
    return strings
  }

  skip(bytes: number): void {
    if (bytes > this.remaining) this.fail("Truncated", `${bytes} bytes of data where ${this.remaining} are left in the file`)
    if (this.#at + bytes <= this.#filled) {
      this.#at += bytes
      return
    }
    this.#base = this.position + bytes
    this.#filled = 0
    this.#at = 0
  }

  skipString(): void {
    this.skip(this.u64())
  }

  #stringLength(limit: number): number {
    const length = this.u64()
    if (length > this.remaining) this.fail("Truncated", `a string of ${length} bytes where ${this.remaining} are left in the file`)
    if (length > limit) this.fail("Invalid", `a string of ${length} bytes where at most ${limit} make sense`)
    return length
  }

  #text(length: number): string {
    const at = this.#take(length)
    const text = this.#window.toString("utf8", at, at + length)
    if (text.includes("\uFFFD") && !isUtf8(this.#window.subarray(at, at + length))) this.fail("Invalid", "text that is not UTF-8")
    return text
  }

  /** Index in the window of the next `bytes` bytes, which are then behind the cursor. */
  #take(bytes: number): number {
    if (this.#at + bytes > this.#filled) this.#refill(bytes)
    const at = this.#at
    this.#at += bytes
    return at
  }

  #refill(bytes: number): void {
    if (bytes > this.remaining) this.fail("Truncated", "the file ends too early")
    const base = this.position
    if (bytes > this.#window.length) this.#window = Buffer.allocUnsafe(bytes)
    const wanted = Math.min(this.#window.length, this.size - base)
    let filled = 0
    while (filled < wanted) {
      const read = readSync(this.#fd, this.#window, filled, wanted - filled, base + filled)
      if (read === 0) this.fail("Truncated", "the file became shorter while it was read")
      filled += read
    }
    this.#base = base
    this.#filled = filled
    this.#at = 0
  }
}

/** Text from a file as it may be shown: one short line without control characters. */
export const printable = (text: string): string => {
  const shown = text.length > 80 ? `${text.slice(0, 80)}…` : text
  return shown.toWellFormed().replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

export const modelError = (reason: ModelError["reason"], message: string, subject: string | undefined): ModelError =>
  new ModelError({ reason, message, ...(subject === undefined ? {} : { subject: printable(subject) }) })
