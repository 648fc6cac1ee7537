import { ownString } from "./OwnString.ts"

interface Entry {
  readonly ids: Int32Array
  readonly bytes: number
}

interface Share {
  readonly entries: Map<string, Entry>
  bytes: number
}

const entryOverhead = 128

/**
 * Ids of texts between special tokens. Each tenant finds only what it encoded itself, so that the time of an answer tells nobody what others
 * have sent; the room is shared, and the tenant that takes the most of it loses its least recently used texts first.
 */
export class SectionCache {
  readonly #capacity: number
  readonly #shares = new Map<string, Share>()
  #bytes = 0

  constructor(capacityBytes: number) {
    this.#capacity = capacityBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get(tenant: string, text: string): Int32Array | undefined {
    // A lookup hashes the text.
    if (text.length * 2 > this.#capacity / 4) return undefined
    const entries = this.#shares.get(tenant)?.entries
    const entry = entries?.get(text)
    if (entries === undefined || entry === undefined) return undefined
    entries.delete(text)
    entries.set(text, entry)
    return entry.ids
  }

  /** A text that would take more than a quarter of the room is not kept. */
  set(tenant: string, text: string, ids: Int32Array): void {
    const bytes = text.length * 2 + ids.byteLength + entryOverhead
    if (bytes > this.#capacity / 4) return
    let share = this.#shares.get(tenant)
    if (share === undefined) this.#shares.set(tenant, share = { entries: new Map(), bytes: 0 })
    if (share.entries.has(text)) return
    share.entries.set(ownString(text), { ids, bytes })
    share.bytes += bytes
    this.#bytes += bytes
    while (this.#bytes > this.#capacity) this.#evict()
  }

  #evict(): void {
    const [tenant, share] = Array.from(this.#shares).reduce((largest, other) => other[1].bytes > largest[1].bytes ? other : largest)
    for (const [oldest, entry] of share.entries) {
      share.entries.delete(oldest)
      share.bytes -= entry.bytes
      this.#bytes -= entry.bytes
      break
    }
    if (share.entries.size === 0) this.#shares.delete(tenant)
  }
}
