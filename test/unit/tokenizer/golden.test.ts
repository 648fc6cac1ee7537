import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { existsSync } from "node:fs"
import type { Vocabulary } from "../../../src/models/ModelMetadata.ts"
import { endTokens } from "../../../src/tokenizer/EndTokens.ts"
import { PromptEncoder } from "../../../src/tokenizer/PromptEncoder.ts"
import { SpecialTokens } from "../../../src/tokenizer/SpecialTokens.ts"
import { Utf8Stream } from "../../../src/tokenizer/StreamDecoder.ts"
import { TokenPieces } from "../../../src/tokenizer/TokenPieces.ts"
import * as TokenTypes from "../../../src/tokenizer/TokenTypes.ts"
import { goldenPath, goldenVocabulary, readJson, readVocabulary } from "./vectors.ts"

interface Vector {
  readonly text: string
  readonly parse_special: boolean
  readonly add_special: boolean
  readonly ids: ReadonlyArray<number>
}

interface Vectors {
  readonly agreed: ReadonlyArray<Vector>
  readonly disputed: ReadonlyArray<
    Omit<Vector, "ids"> & { readonly hf: ReadonlyArray<number>; readonly right: string; readonly cause: string }
  >
  readonly plain: ReadonlyArray<{ readonly text: string; readonly ids: ReadonlyArray<number> }>
}

/** Texts of which golden/tokenizer/README.md says that the library and the reference differ harmlessly. */
const harmless: Record<string, ReadonlyArray<string>> = { "spm-gemma3": ["literal-lower-block"] }

const encoder = (vocabulary: Vocabulary) => {
  const prompt = Result.getOrThrow(PromptEncoder.make(vocabulary))
  const tags = new SpecialTokens(vocabulary, [TokenTypes.userDefined])
  const encode = (specials: SpecialTokens, text: string) =>
    specials.cut(text.toWellFormed(), []).flatMap((part) => typeof part === "number" ? [part] : Array.from(prompt.encodeText(part)))
  return {
    plain: (text: string) => Array.from(prompt.encodeText(text)),
    vector: ({ add_special, parse_special, text }: Omit<Vector, "ids">) => [
      ...(add_special && prompt.bosId !== undefined ? [prompt.bosId] : []),
      ...encode(parse_special ? prompt.specials : tags, text)
    ]
  }
}

const check = (vocabulary: Vocabulary, vectors: Vectors, allowedCauses: ReadonlyArray<string>): number => {
  const encode = encoder(vocabulary)
  for (const vector of vectors.agreed) assert.deepEqual(encode.vector(vector), vector.ids, JSON.stringify(vector))
  for (const vector of vectors.disputed) {
    if (allowedCauses.includes(vector.cause)) continue
    assert.strictEqual(vector.right, "hf")
    assert.deepEqual(encode.vector(vector), vector.hf, JSON.stringify(vector))
  }
  for (const { ids, text } of vectors.plain) assert.deepEqual(encode.plain(text), ids, JSON.stringify(text))
  return vectors.agreed.length + vectors.disputed.length + vectors.plain.length
}

const committed = ["qwen2", "llama-bpe", "smollm", "gpt-2", "gpt-4o", "spm-llama"]
const optional = ["qwen35", "glm4", "starcoder", "laguna", "tekken", "deepseek-v3", "spm-gemma3", "gemma4"].map((name) => `small/${name}`)
const real = ["gpt-2", "llama-bpe", "llama-spm", "qwen2", "qwen35", "gemma-4"].map((name) => `real/${name}`)

describe("every vector", () => {
  for (const name of committed) {
    it(`of ${name}`, () => {
      const vocabulary = goldenVocabulary(name)
      assert.isDefined(vocabulary)
      assert.strictEqual(check(vocabulary, readJson(`test/fixtures/golden/tokenizer/small/${name}.json`), []), 403)
    })
  }

  for (const name of [...optional, ...real]) {
    const vectors = goldenPath(`${name}.json`)
    const path = goldenPath(`${name}.gguf`)
    it.skipIf(vectors === undefined || path === undefined)(`of ${name} (beside the checkout)`, () => {
      assert.strictEqual(check(readVocabulary(path ?? ""), readJson(vectors ?? ""), harmless[name.slice(6)] ?? []), 403)
    })
  }

  const smollm2 = "../shared/models/SmolLM2-135M-Instruct.Q4_1.gguf"
  const vectors = goldenPath("real/smollm2.json")
  it.skipIf(!existsSync(smollm2) || vectors === undefined)("of SmolLM2 (beside the checkout)", () => {
    assert.strictEqual(check(readVocabulary(smollm2), readJson(vectors ?? ""), []), 403)
  })
})

interface MixedCase {
  readonly vocab: string
  readonly name: string
  readonly segments: ReadonlyArray<{ readonly text: string; readonly trusted: boolean }>
  readonly ids: ReadonlyArray<number>
}

interface DetokCase {
  readonly vocab: string
  readonly name: string
  readonly ids: ReadonlyArray<number>
  readonly show_special: boolean
  readonly start: "document" | "continuation"
  readonly pieces: ReadonlyArray<string>
  readonly stream: ReadonlyArray<string>
  readonly tail: string
  readonly text: string
}

const vocabulariesOf = <A extends { readonly vocab: string }>(
  cases: ReadonlyArray<A>
): ReadonlyArray<readonly [string, ReadonlyArray<A>]> =>
  Object.entries(Object.groupBy(cases, (one) => one.vocab)).map(([name, of]) => [name, of ?? []])

describe("trusted and untrusted text in one prompt", () => {
  const cases: ReadonlyArray<MixedCase> = readJson("test/fixtures/golden/tokenizer/mixed.json")
  for (const [vocab, of] of vocabulariesOf(cases)) {
    const vocabulary = goldenVocabulary(vocab)
    it.skipIf(vocabulary === undefined)(`with ${vocab}`, () => {
      if (vocabulary === undefined) return
      const prompt = Result.getOrThrow(PromptEncoder.make({ ...vocabulary, addBos: false }))
      for (const { ids, name, segments } of of) {
        const untrusted: Array<readonly [number, number]> = []
        let text = ""
        for (const segment of segments) {
          if (!segment.trusted) untrusted.push([text.length, text.length + segment.text.length])
          text += segment.text
        }
        const parts = prompt.specials.cut(text, untrusted).map((part) => typeof part === "number" ? part : prompt.encodeText(part))
        assert.deepEqual(Array.from(prompt.join(parts)), ids, name)
      }
    })
  }
})

describe("streamed text", () => {
  const cases: ReadonlyArray<DetokCase> = readJson("test/fixtures/golden/tokenizer/detok.json")
  for (const [vocab, of] of vocabulariesOf(cases)) {
    const vocabulary = goldenVocabulary(vocab)
    it.skipIf(vocabulary === undefined)(`of ${vocab}`, () => {
      if (vocabulary === undefined) return
      const quiet = new TokenPieces(vocabulary)
      const loud = new TokenPieces(vocabulary, true)
      for (const one of of) {
        const pieces = one.show_special ? loud : quiet
        assert.deepEqual(one.ids.map((id) => Buffer.from(pieces.bytes(id)).toString("hex")), one.pieces, one.name)
        const stream = new Utf8Stream(pieces, one.start === "document" && vocabulary.addSpacePrefix === true)
        assert.deepEqual(one.ids.map((id) => stream.push(id)), one.stream, one.name)
        assert.strictEqual(stream.end(), one.tail, one.name)
        assert.strictEqual(one.stream.join("") + one.tail, one.text)
      }
    })
  }
})

describe("the bundled model", () => {
  it("gets the ids that its reference prompts have, and gives their answers", () => {
    const vocabulary = readVocabulary("models/mashbox-demo.gguf")
    const prompt = Result.getOrThrow(PromptEncoder.make(vocabulary))
    const golden = readJson("test/fixtures/mashbox-demo.golden.json")
    const cases = [...golden.exact, ...golden.other]
    assert.isAtLeast(cases.length, 48)
    assert.deepEqual(Array.from(endTokens(vocabulary)), golden.end_ids)
    const pieces = new TokenPieces(vocabulary, true)
    for (const one of cases) {
      const parts = prompt.specials.cut(one.prompt, []).map((part) => typeof part === "number" ? part : prompt.encodeText(part))
      assert.deepEqual(Array.from(prompt.join(parts)), one.prompt_ids, one.name)
      const stream = new Utf8Stream(pieces)
      assert.strictEqual(one.output_ids.map((id: number) => stream.push(id)).join("") + stream.end(), one.output, one.name)
    }
  })
})
