import { assert, describe, it } from "@effect/vitest"
import { SectionCache } from "../../../src/tokenizer/SectionCache.ts"

describe("SectionCache", () => {
  it("forgets the least recently used texts when it is full", () => {
    const cache = new SectionCache(5_000)
    const text = (i: number) => `section ${i} ${"x".repeat(240)}`
    for (let i = 0; i < 6; i++) {
      cache.set("a", text(i), Int32Array.of(i))
      assert.deepEqual(cache.get("a", text(0)), Int32Array.of(0))
    }
    for (let i = 6; i < 12; i++) cache.set("a", text(i), Int32Array.of(i))
    assert.isAtMost(cache.bytes, 5_000)
    const known = Array.from({ length: 12 }, (_, i) => i).filter((i) => cache.get("a", text(i)) !== undefined)
    assert.deepEqual(known, [0, 6, 7, 8, 9, 10, 11])
  })

  it("does not give all its room to one text", () => {
    const cache = new SectionCache(10_000)
    cache.set("a", "small", Int32Array.of(1))
    const before = cache.bytes
    cache.set("a", "x".repeat(5_000), new Int32Array(2))
    assert.strictEqual(cache.bytes, before)
    assert.deepEqual(cache.get("a", "small"), Int32Array.of(1))
  })

  it("counts a text once", () => {
    const cache = new SectionCache(10_000)
    cache.set("a", "text", Int32Array.of(1))
    const before = cache.bytes
    cache.set("a", "text", Int32Array.of(1))
    assert.strictEqual(cache.bytes, before)
  })

  it("gives a tenant nothing of another's, and takes the room from the one that has most of it", () => {
    const cache = new SectionCache(10_000)
    const text = (i: number) => `section ${i} ${"x".repeat(240)}`
    cache.set("b", "secret", Int32Array.of(7))
    assert.isUndefined(cache.get("a", "secret"))
    cache.set("a", "secret", Int32Array.of(7))
    for (let i = 0; i < 100; i++) cache.set("a", text(i), Int32Array.of(i))
    assert.isAtMost(cache.bytes, 10_000)
    assert.deepEqual(cache.get("b", "secret"), Int32Array.of(7))
    assert.deepEqual(cache.get("a", text(99)), Int32Array.of(99))
    assert.isUndefined(cache.get("a", "secret"))
  })
})
