import { assert, describe, it } from "@effect/vitest"
import { Tokenizer } from "@huggingface/tokenizers"
import type { Matcher } from "../../../src/tokenizer/Matchers.ts"
import { blockWords, Pieces } from "../../../src/tokenizer/Matchers.ts"
import { preTokenizerOf } from "../../../src/tokenizer/PreTokenizers.ts"
import { readVocabulary } from "./vectors.ts"

// The families' own expressions in Oniguruma's spelling; `(?i:'s)` also matches the long s, U+017F.
const contraction = "'(?:[sS\\u017f]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
const lines = "\\s*[\\r\\n]+"
const spaces = "\\s+(?!\\S)|\\s+"
const words = (number: string) => `${contraction}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${number}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${lines}|${spaces}`
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|${spaces}`
const upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
const lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
const cased = (suffix: string) => `[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+${suffix}|[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*${suffix}`

const expressions: Readonly<Record<string, ReadonlyArray<string>>> = {
  "qwen2": [words("\\p{N}")],
  "llama-bpe": [words("\\p{N}{1,3}")],
  "qwen35": [
    `${contraction}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${lines}|${spaces}`
  ],
  "smollm": ["\\p{N}", gpt2],
  "gpt-2": [gpt2],
  "gpt-4o": [`${cased(`(?:${contraction})?`)}|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${lines}|${spaces}`],
  "tekken": [`${cased("")}|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${lines}|${spaces}`],
  "laguna": ["[^\\n]+|\\n+", words("\\p{N}")],
  "deepseek-v3": [
    "\\p{N}{1,3}",
    "[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" +
    `${lines}|${spaces}`
  ]
}

const reference = (splits: ReadonlyArray<string>): (text: string) => ReadonlyArray<string> => {
  const { pre_tokenizer } = new Tokenizer({
    version: "1.0",
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: splits.map((regex) => ({ type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false }))
    },
    model: { type: "BPE", vocab: {}, merges: [] },
    post_processor: null,
    decoder: null
  }, {})
  return (text) => text === "" ? [] : pre_tokenizer?.(text) ?? []
}

const pieces = (text: string, matchers: ReadonlyArray<Matcher>): ReadonlyArray<string> => {
  const cut = new Pieces(text, matchers)
  const found: Array<string> = []
  while (cut.next()) found.push(text.slice(cut.start, cut.end))
  return found
}

/** Every kind of character that some expression tells apart, and pairs that stand close to each other in them. */
const alphabet = [
  ..."aZzAsStTrReEvVmMlLdD'' \t\n\r/!.,-_~`[<1９0²½Ⅳ٣",
  "\u017f",
  "é",
  "É",
  "ǅ",
  "ʰ",
  "ª",
  "中",
  "あ",
  "ー",
  "한",
  "ا",
  "\u0301",
  "\u0e31",
  "\u0903",
  "👋",
  "🏽",
  "𝒜",
  "𝟘",
  "\u{1e900}",
  "\u{1e922}",
  "\u200d",
  "\u00a0",
  "\u0085",
  "\u3000",
  "\ufeff",
  "\u0000",
  "\u2028",
  "€",
  "\u2581",
  "  ",
  "\r\n",
  "'re",
  "'LL",
  "ſ"
]

const randomTexts = (count: number): ReadonlyArray<string> => {
  let state = 7
  const random = (below: number) => (state = (state * 48_271) % 0x7fffffff) % below
  return Array.from({ length: count }, () => {
    const few = Array.from({ length: 1 + random(6) }, () => alphabet[random(alphabet.length)] ?? "")
    const choices = random(2) === 0 ? few : alphabet
    return Array.from({ length: random(14) }, () => (choices[random(choices.length)] ?? "").repeat(1 + (random(5) === 0 ? random(4) : 0)))
      .join("")
  })
}

const texts = randomTexts(4_000)

const matchersOf = (pre: string): ReadonlyArray<Matcher> => {
  const found = preTokenizerOf({ ...readVocabulary("models/mashbox-demo.gguf"), pre })
  assert.isDefined(found)
  return found.matchers
}

describe("pieces", () => {
  for (const [name, splits] of Object.entries(expressions)) {
    it(`of ${name} are those of its regular expressions`, () => {
      const expected = reference(splits)
      const matchers = matchersOf(name)
      for (const text of texts) assert.deepEqual(pieces(text, matchers), expected(text), JSON.stringify(text))
      for (let point = 0; point < 0x2_0000; point += point < 0x3100 ? 1 : 17) {
        if (point >= 0xd800 && point < 0xe000) continue
        const text = `a ${String.fromCodePoint(point)}b`
        assert.deepEqual(pieces(text, matchers), expected(text), point.toString(16))
      }
    })

    it(`of ${name} are found in long runs of one character, where a regular expression's stack ends`, () => {
      const matchers = matchersOf(name)
      for (const character of ["A", " ", "\u0301", "中", "👋"]) {
        const text = character.repeat(1_200_000)
        const cut = new Pieces(text, matchers)
        let covered = 0
        let count = 0
        for (; cut.next() && cut.start === covered; count++) covered = cut.end
        assert.strictEqual(covered, text.length)
        assert.isAtMost(count, 2, `${name} ${character}`)
      }
    })
  }

  it("of SentencePiece are words after their space", () => {
    const expected = reference(["\u2581+[^\u2581]*|[^\u2581]+"])
    for (const text of texts) assert.deepEqual(pieces(text, [blockWords]), expected(text), JSON.stringify(text))
  })
})
