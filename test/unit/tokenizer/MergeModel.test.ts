import { assert, describe, it } from "@effect/vitest"
import { BPE } from "@huggingface/tokenizers"
import { Schema } from "effect"
import { IdList } from "../../../src/tokenizer/IdList.ts"
import { MergeModel } from "../../../src/tokenizer/MergeModel.ts"
import { abandon, finish } from "../../../src/tokenizer/Paused.ts"

/** Merges whose ranks contradict each other in every way: all two-part cuts of strings over a small alphabet, in a scrambled order. */
const alphabet = ["a", "b", "é", "👋"]
const merges: ReadonlyArray<readonly [string, string]> = (() => {
  const texts: Array<string> = [...alphabet]
  for (const first of alphabet) for (const second of alphabet) texts.push(first + second)
  texts.push("aaa", "aab", "aba", "abab", "baab", "aaaa", "éab", "a👋b", "abababab")
  const pairs = texts.flatMap((text) => {
    const chars = Array.from(text)
    return chars.slice(1).map((_, i) => [chars.slice(0, i + 1).join(""), chars.slice(i + 1).join("")] as const)
  })
  return pairs.filter(([left, right]) => texts.includes(left) && texts.includes(right)).map((pair, i) => ({ pair, key: (i * 7919) % 101 }))
    .toSorted((a, b) => a.key - b.key).map(({ pair }) => pair)
})()
const tokens = new Set([...alphabet, ...merges.flat(), ...merges.map((pair) => pair.join(""))])

const names = Array.from(tokens)
const library = new BPE({
  type: "BPE",
  vocab: Object.fromEntries(names.map((token, id) => [token, id])),
  merges,
  ignore_merges: false,
  byte_fallback: true,
  fuse_unk: true,
  unk_token: "<unk>"
})

const model = (options: { readonly ignoreMerges?: boolean; readonly byteLevel?: boolean; readonly ids?: Map<string, number> } = {}) =>
  new MergeModel({
    ids: options.ids ?? new Map(names.map((token, id) => [token, id])),
    merges: merges.map((pair) => pair.join(" ")),
    byteLevel: options.byteLevel ?? false,
    ignoreMerges: options.ignoreMerges ?? false,
    unknown: undefined
  })

const encode = (bpe: MergeModel, pieces: ReadonlyArray<string>): ReadonlyArray<number> => {
  const ids = new IdList()
  for (const piece of pieces) bpe.encode(piece, ids)
  return Array.from(ids.toArray())
}

const encodeLong = (bpe: MergeModel, piece: string): ReadonlyArray<number> => {
  const ids = new IdList()
  finish(bpe.encodeLong(piece, ids))
  return Array.from(ids.toArray())
}

const expected = (...pieces: ReadonlyArray<string>) => pieces.flatMap((piece) => library.bpe(piece)).map((token) => names.indexOf(token))

describe("MergeModel", () => {
  it.prop(
    "merges what the library's BPE merges",
    {
      picks: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: alphabet.length - 1 }))),
      times: Schema.Literals([1, 3, 9])
    },
    ({ picks, times }) => {
      const text = picks.map((pick) => alphabet[pick]).join("").repeat(times)
      const ids = text === "" ? [] : expected(text)
      assert.deepEqual(encode(model(), [text]), ids)
      assert.deepEqual(encodeLong(model(), text), ids)
    },
    { arbitrary: { runs: 500 } }
  )

  it("merges long pieces like the library's BPE", () => {
    let state = 1
    const random = () => (state = (state * 48_271) % 0x7fffffff)
    for (const length of [23, 24, 25, 26, 500, 5000]) {
      for (const letters of [1, 2, 4]) {
        const text = Array.from({ length }, () => alphabet[random() % letters]).join("")
        assert.deepEqual(encode(model(), [text]), expected(text))
        assert.deepEqual(encodeLong(model(), text), expected(text))
      }
    }
  })

  it("merges one huge piece at a time, and the next when the first ended or was given up", () => {
    const bpe = model()
    const huge = "ab".repeat(200_000)
    const first = bpe.encodeLong(huge, new IdList())
    first.next()
    const ids = new IdList()
    const second = bpe.encodeLong(huge, ids)
    assert.strictEqual(second.next().value, "waiting")
    assert.deepEqual(encodeLong(bpe, "abab".repeat(1000)), expected("abab".repeat(1000)))
    abandon(first)
    finish(second)
    assert.isAbove(ids.length, 1)
  })

  it("answers from its cache what it answered before", () => {
    const bpe = model()
    const first = encode(bpe, ["abab", "aab", "abab"])
    assert.deepEqual(encode(bpe, ["abab", "aab", "abab"]), first)
    assert.deepEqual(first, expected("abab", "aab", "abab"))
    for (let i = 0; i < 40_000; i++) encode(bpe, [`a${i % 3 === 0 ? "b" : "a"}`.repeat(1 + i % 30)])
    assert.deepEqual(encode(bpe, ["abab", "aab", "abab"]), first)
  })

  it("makes no token that the vocabulary does not have", () => {
    const ids = new Map([["a", 0], ["b", 1]])
    assert.deepEqual(encode(model({ ids }), ["abab"]), [0, 1, 0, 1])
  })

  it("knows a token named __proto__", () => {
    const ids = new Map([["__proto__", 7], ["_", 8]])
    assert.deepEqual(encode(model({ ids, byteLevel: true, ignoreMerges: true }), ["__proto__"]), [7])
  })

  it("falls back to bytes, then to the unknown token", () => {
    const ids = new Map(["a", "<0xE2>", "<0x82>", "<0xAC>"].map((token, id) => [token, id]))
    assert.deepEqual(encode(model({ ids }), ["a€"]), [0, 1, 2, 3])
    const unknown = new MergeModel({ ids: new Map(), merges: [], byteLevel: false, ignoreMerges: false, unknown: 9 })
    assert.deepEqual(encode(unknown, ["a€"]), [9, 9])
  })
})
