import { assert, describe, it } from "@effect/vitest"
import { RepetitionDetector } from "../../../src/generation/RepetitionDetector.ts"
import { random } from "./tools/runs.ts"

/** Tokens up to and including the one at which repetition is noticed; undefined where it never is. */
const noticedAt = (limit: number, tokens: ReadonlyArray<number>): number | undefined => {
  const detector = new RepetitionDetector(limit)
  const at = tokens.findIndex((token) => detector.push(token))
  return at < 0 ? undefined : at + 1
}

const repeated = (passage: ReadonlyArray<number>, times: number) => Array.from({ length: times }, () => passage).flat()

describe("RepetitionDetector", () => {
  it("notices a passage of any length once it fills the last tokens, at least eight times", () => {
    for (const period of [1, 2, 3, 7, 64, 255, 256]) {
      const passage = Array.from({ length: period }, (_, index) => 100 + index)
      for (const limit of [1, 40, 2048]) {
        const before = [1, 2, 3, 4, 5]
        const at = noticedAt(limit, [...before, ...repeated(passage, Math.ceil(limit / period) + 10)])
        assert.strictEqual(at, before.length + Math.max(limit, 8 * period), `${period} ${limit}`)
      }
    }
  })

  it("lets pass what changes, what repeats less, and passages that are longer", () => {
    const next = random(5)
    assert.isUndefined(noticedAt(64, Array.from({ length: 20_000 }, () => Math.floor(next() * 50))))
    assert.isUndefined(noticedAt(100, repeated(Array.from({ length: 50 }, (_, index) => index), 7)))
    assert.isUndefined(noticedAt(10, repeated(Array.from({ length: 257 }, (_, index) => index), 12)))
    assert.isUndefined(noticedAt(30, repeated([1, 2, 3], 9)))
    assert.strictEqual(noticedAt(27, repeated([1, 2, 3], 9)), 27)
  })
})
