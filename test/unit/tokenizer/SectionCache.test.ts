import { assert, describe, it } from "@effect/vitest"
import { SectionCache } from "../../../src/tokenizer/SectionCache.ts"

describe("SectionCache", () => {
  it("forgets the least recently used texts when it is full", () => {
    const cache = new SectionCache(5_000)
    const text = (i: number) => `section ${i} ${"x".repeat(240)}`
    for (let i = 0; i < 6; i++) {
      cache.set(text(i), Int32Array.of(i))
      assert.deepEqual(cache.get(text(0)), Int32Array.of(0))
    }
    for (let i = 6; i < 12; i++) cache.set(text(i), Int32Array.of(i))
    assert.isAtMost(cache.bytes, 5_000)
    const known = Array.from({ length: 12 }, (_, i) => i).filter((i) => cache.get(text(i)) !== undefined)
    assert.deepEqual(known, [0, 6, 7, 8, 9, 10, 11])
  })

  it("does not give all its room to one text", () => {
    const cache = new SectionCache(10_000)
    cache.set("small", Int32Array.of(1))
    const before = cache.bytes
    cache.set("x".repeat(5_000), new Int32Array(2))
    assert.strictEqual(cache.bytes, before)
    assert.deepEqual(cache.get("small"), Int32Array.of(1))
  })

  it("counts a text once", () => {
    const cache = new SectionCache(10_000)
    cache.set("text", Int32Array.of(1))
    const before = cache.bytes
    cache.set("text", Int32Array.of(1))
    assert.strictEqual(cache.bytes, before)
  })
})
