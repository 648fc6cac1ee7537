import { ownString } from "./OwnString.ts"

interface Entry {
  readonly ids: Int32Array
  readonly bytes: number
}

const entryOverhead = 128

/** Ids of texts between special tokens, least recently used out first. */
export class SectionCache {
  readonly #capacity: number
  readonly #entries = new Map<string, Entry>()
  #bytes = 0

  constructor(capacityBytes: number) {
    this.#capacity = capacityBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get(text: string): Int32Array | undefined {
    const entry = this.#entries.get(text)
    if (entry === undefined) return undefined
    this.#entries.delete(text)
    this.#entries.set(text, entry)
    return entry.ids
  }

  /** A text that would take more than a quarter of the room is not kept. */
  set(text: string, ids: Int32Array): void {
    const bytes = text.length * 2 + ids.byteLength + entryOverhead
    if (bytes > this.#capacity / 4 || this.#entries.has(text)) return
    this.#entries.set(ownString(text), { ids, bytes })
    this.#bytes += bytes
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= this.#capacity) break
      this.#entries.delete(oldest)
      this.#bytes -= entry.bytes
    }
  }
}
