/** A seeded source of numbers in [0, 1): mulberry32. */
export const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

export const pick = <A>(next: () => number, list: readonly [A, ...ReadonlyArray<A>]): A => list[Math.floor(next() * list.length)] ?? list[0]
