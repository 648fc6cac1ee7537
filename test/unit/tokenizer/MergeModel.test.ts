import { assert, describe, it } from "@effect/vitest"
import { BPE } from "@huggingface/tokenizers"
import { Schema } from "effect"
import { MergeModel } from "../../../src/tokenizer/MergeModel.ts"

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

const library = new BPE({
  type: "BPE",
  vocab: Object.fromEntries(Array.from(tokens, (token, id) => [token, id])),
  merges,
  ignore_merges: false,
  byte_fallback: true,
  fuse_unk: true,
  unk_token: "<unk>"
})

const model = (options: { readonly ignoreMerges?: boolean; readonly byteLevel?: boolean; readonly ids?: Map<string, number> } = {}) =>
  new MergeModel({
    ids: options.ids ?? new Map(Array.from(tokens, (token, id) => [token, id])),
    merges: merges.map((pair) => pair.join(" ")),
    byteLevel: options.byteLevel ?? false,
    ignoreMerges: options.ignoreMerges ?? false,
    unknown: undefined
  })

describe("MergeModel", () => {
  it.prop(
    "merges what the library's BPE merges",
    {
      picks: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: alphabet.length - 1 }))),
      times: Schema.Literals([1, 3, 9])
    },
    ({ picks, times }) => {
      const text = picks.map((pick) => alphabet[pick]).join("").repeat(times)
      assert.deepEqual(model().bpe(text), text === "" ? [] : library.bpe(text))
    },
    { arbitrary: { runs: 500 } }
  )

  it("merges long pieces like the library's BPE", () => {
    let state = 1
    const random = () => (state = (state * 48_271) % 0x7fffffff)
    for (const length of [23, 24, 25, 26, 500, 5000]) {
      for (const letters of [1, 2, 4]) {
        const text = Array.from({ length }, () => alphabet[random() % letters]).join("")
        assert.deepEqual(model().bpe(text), library.bpe(text))
      }
    }
  })

  it("answers from its cache what it answered before", () => {
    const bpe = model()
    const first = bpe.encode(["abab", "aab", "abab"])
    assert.deepEqual(bpe.encode(["abab", "aab", "abab"]), first)
    assert.deepEqual(first, [...library.bpe("abab"), ...library.bpe("aab"), ...library.bpe("abab")])
    for (let i = 0; i < 40_000; i++) bpe.encode([`a${i % 3 === 0 ? "b" : "a"}`.repeat(1 + i % 30)])
    assert.deepEqual(bpe.encode(["abab", "aab", "abab"]), first)
  })

  it("makes no token that the vocabulary does not have", () => {
    const ids = new Map([["a", 0], ["b", 1]])
    assert.deepEqual(model({ ids }).encode(["abab"]), ["a", "b", "a", "b"])
  })

  it("knows a token named __proto__", () => {
    const ids = new Map([["__proto__", 7], ["_", 8]])
    assert.deepEqual(model({ ids, byteLevel: true, ignoreMerges: true }).encode(["__proto__"]), ["__proto__"])
  })

  it("falls back to bytes, then to the unknown token", () => {
    const bytes = ["<0xE2>", "<0x82>", "<0xAC>"]
    const ids = new Map(["a", ...bytes].map((token, id) => [token, id]))
    assert.deepEqual(model({ ids }).encode(["a€"]), ["a", ...bytes])
    const unknown = new MergeModel({ ids: new Map([["<unk>", 0]]), merges: [], byteLevel: false, ignoreMerges: false, unknown: "<unk>" })
    assert.deepEqual(unknown.encode(["a€"]), ["<unk>", "<unk>"])
  })
})
