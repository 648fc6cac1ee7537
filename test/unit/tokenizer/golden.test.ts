import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { existsSync } from "node:fs"
import type { Vocabulary } from "../../../src/models/ModelMetadata.ts"
import { PromptEncoder } from "../../../src/tokenizer/PromptEncoder.ts"
import { SpecialTokens } from "../../../src/tokenizer/SpecialTokens.ts"
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
  readonly disputed: ReadonlyArray<Omit<Vector, "ids"> & { readonly hf: ReadonlyArray<number>; readonly right: string; readonly cause: string }>
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
