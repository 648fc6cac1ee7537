/** The bytes in pieces of the given sizes, again and again; a size below 1 counts as 1. */
export const cut = (bytes: Uint8Array, sizes: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  for (let offset = 0, i = 0; offset < bytes.length; i++) {
    const size = Math.max(1, sizes[i % sizes.length] ?? bytes.length)
    pieces.push(bytes.slice(offset, offset + size))
    offset += size
  }
  return pieces
}

export const join = (parts: ReadonlyArray<Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat(parts))

/** Equal seeds give equal sequences of u32. */
export const random = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let word = Math.imul(state ^ (state >>> 15), 1 | state)
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word
    return (word ^ (word >>> 14)) >>> 0
  }
}
