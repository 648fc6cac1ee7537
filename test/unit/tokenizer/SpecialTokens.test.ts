import { assert, describe, it } from "@effect/vitest"
import { SpecialTokens } from "../../../src/tokenizer/SpecialTokens.ts"
import { goldenVocabulary } from "./vectors.ts"

const base = goldenVocabulary("qwen2")
const make = (tokens: ReadonlyArray<string>) => {
  assert.isDefined(base)
  return new SpecialTokens({ ...base, tokens, types: new Int32Array(tokens.length).fill(3) })
}

describe("SpecialTokens", () => {
  it("takes the leftmost match and the longest there", () => {
    const specials = make(["<a>", "<a>b", "b<", "<"])
    assert.deepEqual(specials.cut("x<a>b<a>", []), ["x", 1, 0])
    assert.deepEqual(specials.cut("b<a>", []), [2, "a>"])
  })

  it("takes the longest of those that lie in trusted text alone", () => {
    const specials = make(["<a>", "<a>b"])
    assert.deepEqual(specials.cut("<a>b", [[3, 4]]), [0, "b"])
    assert.deepEqual(specials.cut("<a>b", [[1, 1]]), [1])
    assert.deepEqual(specials.cut("<a><a><a>", [[3, 4]]), [0, "<a>", 0])
    assert.deepEqual(specials.cut("<a><a>", [[0, 3], [3, 6]]), ["<a><a>"])
    assert.deepEqual(specials.cut("<a>", [[0, 99]]), ["<a>"])
  })

  it("leaves runs of white space and empty tokens to the text", () => {
    const specials = make(["\n\n", "", " \t"])
    assert.strictEqual(specials.ids.size, 0)
    assert.deepEqual(specials.cut("a\n\nb \t", []), ["a\n\nb \t"])
    assert.deepEqual(specials.cut("", []), [])
  })
})
