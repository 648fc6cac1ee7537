import { toAlphabet } from "./ByteAlphabet.ts"
import type { IdList } from "./IdList.ts"
import { ownString } from "./OwnString.ts"
import { PairHeap } from "./PairHeap.ts"
import { finish, type Paused } from "./Paused.ts"

const cachedPieces = 16_384
const cachedPieceLength = 64

/** Up to this many symbols a scan for the best pair beats a heap. */
const scanned = 24

/** Pieces above this many UTF-16 units are merged with pauses. */
export const longPiece = 2048

/** Of pieces above this many units one is merged at a time: each of their symbols takes about 40 bytes meanwhile. */
const hugePiece = 256 * 1024

/** Merges between two pauses. */
const mergesPerPause = 512

export interface MergeModelConfig {
  /** Ids of the tokens that text may become. */
  readonly ids: ReadonlyMap<string, number>
  /** "left right", best first. */
  readonly merges: ReadonlyArray<string>
  /** Pieces are raw text that is first written in GPT-2's byte alphabet; otherwise unknown characters become byte tokens. */
  readonly byteLevel: boolean
  /** A piece that is a token is not merged. */
  readonly ignoreMerges: boolean
  /** The id for what cannot be encoded at all. */
  readonly unknown: number | undefined
}

/**
 * Byte pair encoding over the vocabulary and merges of a GGUF file as they are.
 *
 * The ids of short pieces are kept for all callers. That tells nobody anything about another's text: a known piece of at most 64 units saves
 * microseconds once, below the noise of any answer's time, and words of every text mix in it.
 */
export class MergeModel {
  readonly #ids: ReadonlyMap<string, number>
  readonly #ranks: ReadonlyMap<string, number>
  readonly #byteLevel: boolean
  readonly #ignoreMerges: boolean
  readonly #unknown: number | undefined
  readonly #bytes: ReadonlyArray<number | undefined>
  readonly #pieces = new Map<string, ReadonlyArray<number>>()
  #hugeAtWork = false

  constructor({ byteLevel, ids, ignoreMerges, merges, unknown }: MergeModelConfig) {
    const ranks = new Map<string, number>()
    for (let rank = 0; rank < merges.length; rank++) ranks.set(merges[rank] ?? "", rank)
    this.#ids = ids
    this.#ranks = ranks
    this.#byteLevel = byteLevel
    this.#ignoreMerges = ignoreMerges
    this.#unknown = unknown
    this.#bytes = Array.from({ length: 256 }, (_, byte) => ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`))
  }

  /** Adds the ids of a piece. */
  encode(piece: string, into: IdList): void {
    const known = this.#pieces.get(piece)
    if (known !== undefined) { for (const id of known) into.push(id) }
    else if (piece.length > cachedPieceLength) this.#encodePiece(piece, (id) => into.push(id))
    else {
      const own = ownString(piece)
      const ids: Array<number> = []
      this.#encodePiece(own, (id) => ids.push(id))
      if (this.#pieces.size === cachedPieces) this.#pieces.clear()
      this.#pieces.set(own, ids)
      for (const id of ids) into.push(id)
    }
  }

  /** The same for a piece of any length, with pauses. */
  *encodeLong(piece: string, into: IdList): Paused<void> {
    if (piece.length > hugePiece) yield* this.#alone(this.#merge(piece, into))
    else yield* this.#merge(piece, into)
  }

  *#alone(work: Paused<void>): Paused<void> {
    while (this.#hugeAtWork) yield "waiting"
    this.#hugeAtWork = true
    try {
      yield* work
    } finally {
      this.#hugeAtWork = false
    }
  }

  *#merge(piece: string, into: IdList): Paused<void> {
    const text = this.#byteLevel ? toAlphabet(piece) : piece
    const whole = this.#ignoreMerges ? this.#ids.get(text) : undefined
    if (whole !== undefined) return into.push(whole)
    const bounds = yield* this.#mergeByHeap(text, symbolBounds(text))
    for (let i = 0; i + 1 < bounds.length; i++) {
      if (i % mergesPerPause === 0) yield
      this.#addToken(text.slice(bounds[i], bounds[i + 1]), (id) => into.push(id))
    }
  }

  #encodePiece(piece: string, push: (id: number) => void): void {
    const text = this.#byteLevel ? toAlphabet(piece) : piece
    const whole = this.#ignoreMerges ? this.#ids.get(text) : undefined
    if (whole !== undefined) return push(whole)
    const bounds = symbolBounds(text)
    const merged = bounds.length - 1 <= scanned ? this.#mergeByScan(text, Array.from(bounds)) : finish(this.#mergeByHeap(text, bounds))
    for (let i = 0; i + 1 < merged.length; i++) this.#addToken(text.slice(merged[i], merged[i + 1]), push)
  }

  #addToken(token: string, push: (id: number) => void): void {
    const id = this.#ids.get(token)
    if (id !== undefined) return push(id)
    const bytes = this.#byteLevel ? [] : Array.from(Buffer.from(token), (byte) => this.#bytes[byte])
    if (bytes.length > 0 && bytes.every((byte) => byte !== undefined)) { for (const byte of bytes) push(byte) }
    else if (this.#unknown !== undefined) push(this.#unknown)
  }

  /** Rank of the pair text[start, middle) text[middle, end), Infinity where there is no such merge. */
  #rank(text: string, start: number, middle: number, end: number): number {
    const left = text.slice(start, middle)
    const right = text.slice(middle, end)
    const rank = this.#ranks.get(`${left} ${right}`)
    return rank === undefined || !this.#ids.has(left + right) ? Infinity : rank
  }

  /** Removes the bound inside the best pair until there is none; `bounds` are the offsets of the symbols and the text's end. */
  #mergeByScan(text: string, bounds: Array<number>): ArrayLike<number> {
    const rank = (i: number) => i + 2 < bounds.length ? this.#rank(text, bounds[i] ?? 0, bounds[i + 1] ?? 0, bounds[i + 2] ?? 0) : Infinity
    const ranks = Array.from({ length: bounds.length - 1 }, (_, i) => rank(i))
    for (;;) {
      let best = Infinity
      let at = -1
      for (let i = 0; i < ranks.length; i++) {
        const candidate = ranks[i] ?? Infinity
        if (candidate < best) {
          best = candidate
          at = i
        }
      }
      if (at < 0) return bounds
      bounds.splice(at + 1, 1)
      ranks.splice(at + 1, 1)
      ranks[at] = rank(at)
      if (at > 0) ranks[at - 1] = rank(at - 1)
    }
  }

  /** The same for long pieces, in O(n log n). Symbols are named by their first index and form a doubly linked list. */
  *#mergeByHeap(text: string, bounds: Int32Array): Paused<ArrayLike<number>> {
    const count = bounds.length - 1
    const next = new Int32Array(count + 1)
    const previous = new Int32Array(count + 1)
    for (let i = 0; i <= count; i++) {
      next[i] = i + 1
      previous[i] = i - 1
    }
    const noMerge = -1
    const ranks = new Int32Array(count).fill(noMerge)
    const heap = new PairHeap(count)
    const offer = (left: number) => {
      const right = next[left] ?? count
      const rank = right === count
        ? Infinity
        : this.#rank(text, bounds[left] ?? 0, bounds[right] ?? 0, bounds[next[right] ?? count] ?? 0)
      ranks[left] = rank === Infinity ? noMerge : rank
      if (rank !== Infinity) heap.push(rank, left)
    }
    for (let left = 0; left < count; left++) {
      if (left % mergesPerPause === mergesPerPause - 1) yield
      offer(left)
    }
    let merges = 0
    for (let best = heap.pop(); best !== undefined; best = heap.pop()) {
      if (++merges % mergesPerPause === 0) yield
      const left = best.position
      if (ranks[left] !== best.rank) continue
      const right = next[left] ?? count
      const after = next[right] ?? count
      ranks[right] = noMerge
      next[left] = after
      previous[after] = left
      offer(left)
      if (left > 0) offer(previous[left] ?? 0)
    }
    let kept = 0
    for (let at = 0; at < count; at = next[at] ?? count) bounds[kept++] = bounds[at] ?? 0
    bounds[kept++] = text.length
    return bounds.subarray(0, kept)
  }
}

/** Offsets of the code points of a text, and its length. */
const symbolBounds = (text: string): Int32Array => {
  const bounds = new Int32Array(text.length + 1)
  let count = 0
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) bounds[count++] = at
  bounds[count++] = text.length
  return bounds.subarray(0, count)
}
