import { BPE } from "@huggingface/tokenizers"
import { toAlphabet } from "./ByteAlphabet.ts"
import { ownString } from "./OwnString.ts"
import { PairHeap } from "./PairHeap.ts"

const cachedPieces = 16_384
const cachedPieceLength = 64

/** Up to this many symbols a scan for the best pair beats a heap. */
const scanned = 24

export interface MergeModelConfig {
  /** Ids of the tokens that text may become. */
  readonly ids: Map<string, number>
  /** "left right", best first. */
  readonly merges: ReadonlyArray<string>
  /** Pieces are raw text that is first written in GPT-2's byte alphabet; otherwise unknown characters become byte tokens. */
  readonly byteLevel: boolean
  /** A piece that is a token is not merged. */
  readonly ignoreMerges: boolean
  /** The token for what cannot be encoded at all. */
  readonly unknown: string | undefined
}

/**
 * The library's BPE over the vocabulary and merges of a GGUF file as they are. Its own constructor copies both several times (0.8 s and
 * 170 MB for 280 000 merges), and its merge loop looks every pair up by the pair's JSON text. The results are the same.
 */
export class MergeModel extends BPE {
  readonly #ranks: ReadonlyMap<string, number>
  readonly #byteLevel: boolean
  readonly #pieces = new Map<string, ReadonlyArray<string>>()

  constructor({ byteLevel, ids, ignoreMerges, merges, unknown }: MergeModelConfig) {
    super({ type: "BPE", vocab: {}, merges: [], ignore_merges: ignoreMerges, byte_fallback: !byteLevel, fuse_unk: !byteLevel })
    this.tokens_to_ids = ids
    if (unknown !== undefined) {
      this.unk_token = unknown
      const id = ids.get(unknown)
      if (id !== undefined) this.unk_token_id = id
    }
    const ranks = new Map<string, number>()
    for (let rank = 0; rank < merges.length; rank++) ranks.set(merges[rank] ?? "", rank)
    this.#ranks = ranks
    this.#byteLevel = byteLevel
  }

  override encode(pieces: ReadonlyArray<string>): Array<string> {
    const tokens: Array<string> = []
    for (const piece of pieces) {
      const known = this.#pieces.get(piece)
      if (known !== undefined) { for (const token of known) tokens.push(token) }
      else if (piece.length > cachedPieceLength) this.#encodePiece(piece, tokens)
      else {
        const own = ownString(piece)
        const encoded: Array<string> = []
        this.#encodePiece(own, encoded)
        if (this.#pieces.size === cachedPieces) this.#pieces.clear()
        this.#pieces.set(own, encoded)
        for (const token of encoded) tokens.push(token)
      }
    }
    return tokens
  }

  override bpe(text: string): Array<string> {
    const bounds = symbolBounds(text)
    const merged = bounds.length - 1 <= scanned ? this.#mergeByScan(text, bounds) : this.#mergeByHeap(text, bounds)
    return Array.from({ length: merged.length - 1 }, (_, i) => text.slice(merged[i], merged[i + 1]))
  }

  #encodePiece(piece: string, tokens: Array<string>): void {
    const text = this.#byteLevel ? toAlphabet(piece) : piece
    if (this.ignore_merges && this.tokens_to_ids.has(text)) tokens.push(text)
    else {
      for (const token of this.bpe(text)) {
        if (this.tokens_to_ids.has(token)) tokens.push(token)
        else this.#encodeUnknown(token, tokens)
      }
    }
  }

  #encodeUnknown(symbol: string, tokens: Array<string>): void {
    const bytes = this.byte_fallback
      ? Array.from(Buffer.from(symbol), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`)
      : []
    if (bytes.length > 0 && bytes.every((token) => this.tokens_to_ids.has(token))) tokens.push(...bytes)
    else if (this.unk_token !== undefined) tokens.push(this.unk_token)
  }

  /** Rank of the pair text[start, middle) text[middle, end), Infinity where there is no such merge. */
  #rank(text: string, start: number, middle: number, end: number): number {
    const left = text.slice(start, middle)
    const right = text.slice(middle, end)
    const rank = this.#ranks.get(`${left} ${right}`)
    return rank === undefined || !this.tokens_to_ids.has(left + right) ? Infinity : rank
  }

  /** Removes the bound inside the best pair until there is none; `bounds` are the offsets of the symbols and the text's end. */
  #mergeByScan(text: string, bounds: Array<number>): Array<number> {
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
  #mergeByHeap(text: string, bounds: Array<number>): Array<number> {
    const count = bounds.length - 1
    const next = Int32Array.from({ length: count + 1 }, (_, i) => i + 1)
    const previous = Int32Array.from({ length: count + 1 }, (_, i) => i - 1)
    const ranks = new Float64Array(count).fill(Infinity)
    const heap = new PairHeap(count)
    const offer = (left: number) => {
      const right = next[left] ?? count
      if (right === count) ranks[left] = Infinity
      else ranks[left] = this.#rank(text, bounds[left] ?? 0, bounds[right] ?? 0, bounds[next[right] ?? count] ?? 0)
      const rank = ranks[left] ?? Infinity
      if (rank !== Infinity) heap.push(rank, left)
    }
    for (let left = 0; left < count; left++) offer(left)
    for (let best = heap.pop(); best !== undefined; best = heap.pop()) {
      const left = best.position
      if (ranks[left] !== best.rank) continue
      const right = next[left] ?? count
      const after = next[right] ?? count
      ranks[right] = Infinity
      next[left] = after
      previous[after] = left
      offer(left)
      if (left > 0) offer(previous[left] ?? 0)
    }
    const merged: Array<number> = []
    for (let at = 0; at < count; at = next[at] ?? count) merged.push(bounds[at] ?? 0)
    merged.push(text.length)
    return merged
  }
}

/** Offsets of the code points of a text, and its length. */
const symbolBounds = (text: string): Array<number> => {
  const bounds: Array<number> = []
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) bounds.push(at)
  bounds.push(text.length)
  return bounds
}
