const positions = 2 ** 32

/** A min-heap of (rank, position): lowest rank first, lowest position among equals. Both stay below 2^21 and 2^32, so one double holds them. */
export class PairHeap {
  #keys: Float64Array
  #size = 0

  constructor(capacity: number) {
    this.#keys = new Float64Array(Math.max(capacity, 1))
  }

  push(rank: number, position: number): void {
    if (this.#size === this.#keys.length) {
      const grown = new Float64Array(this.#keys.length * 2)
      grown.set(this.#keys)
      this.#keys = grown
    }
    const key = rank * positions + position
    let at = this.#size++
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = this.#keys[parent] ?? 0
      if (above <= key) break
      this.#keys[at] = above
      at = parent
    }
    this.#keys[at] = key
  }

  pop(): { readonly rank: number; readonly position: number } | undefined {
    if (this.#size === 0) return undefined
    const top = this.#keys[0] ?? 0
    const last = this.#keys[--this.#size] ?? 0
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.#size) break
      if (child + 1 < this.#size && (this.#keys[child + 1] ?? 0) < (this.#keys[child] ?? 0)) child++
      const below = this.#keys[child] ?? 0
      if (below >= last) break
      this.#keys[at] = below
      at = child
    }
    this.#keys[at] = last
    const rank = Math.floor(top / positions)
    return { rank, position: top - rank * positions }
  }
}
