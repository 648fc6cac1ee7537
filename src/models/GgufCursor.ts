import { isUtf8 } from "node:buffer"
import { readSync } from "node:fs"
import { ModelError } from "../domain/Errors.ts"

const windowBytes = 256 * 1024

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
    const length = this.u64()
    if (length > this.remaining) this.fail("Truncated", `a string of ${length} bytes where ${this.remaining} are left in the file`)
    if (length > limit) this.fail("Invalid", `a string of ${length} bytes where at most ${limit} make sense`)
    const at = this.#take(length)
    const text = this.#window.toString("utf8", at, at + length)
    if (text.includes("\uFFFD") && !isUtf8(this.#window.subarray(at, at + length))) this.fail("Invalid", "text that is not UTF-8")
    return text
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
