/** A list of token ids that grows. */
export class IdList {
  #ids = new Int32Array(64)
  length = 0

  push(id: number): void {
    if (this.length === this.#ids.length) {
      const grown = new Int32Array(2 * this.#ids.length)
      grown.set(this.#ids)
      this.#ids = grown
    }
    this.#ids[this.length++] = id
  }

  /** The ids in memory of their own. */
  toArray(): Int32Array<ArrayBuffer> {
    return this.#ids.slice(0, this.length)
  }
}
