import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import type { Vocabulary } from "../../../src/models/ModelMetadata.ts"
import * as GgufTokenizer from "../../../src/tokenizer/GgufTokenizer.ts"
import { PromptEncoder } from "../../../src/tokenizer/PromptEncoder.ts"
import { Tokenizer } from "../../../src/tokenizer/Tokenizer.ts"
import { goldenVocabulary, readVocabulary } from "./vectors.ts"

const vocabulary = readVocabulary("models/mashbox-demo.gguf")
const encoder = Result.getOrThrow(PromptEncoder.make(vocabulary))

const trusted = (text: string) => ({ text, untrusted: [] })

/** Text without special tokens; different for each seed. */
const prose = (characters: number, seed: number) =>
  Array.from({ length: Math.ceil(characters / 12) }, (_, i) => `word${seed} no${i * 7919 % 977}, `).join("").slice(0, characters)

describe("the Tokenizer service", () => {
  it.live("describes the vocabulary", () =>
    Effect.gen(function*() {
      const tokenizer = yield* Tokenizer
      assert.deepEqual([tokenizer.bos, tokenizer.eos, tokenizer.size], ["<|endoftext|>", "<|im_end|>", 4096])
      assert.deepEqual(Array.from(tokenizer.endTokens), [4087, 4089])
      assert.sameMembers(Array.from(tokenizer.specialTexts), vocabulary.tokens.slice(4087))
      assert.deepEqual(["<|im_start|>", "</think>", "Ġthe", "nothing like it"].map(tokenizer.tokenId), [
        4088,
        4091,
        vocabulary.tokens.indexOf("Ġthe"),
        undefined
      ])
    }).pipe(Effect.provide(GgufTokenizer.layer(vocabulary))))

  it.live("gives the bytes of every token, control tokens' texts and none for what is no token", () =>
    Effect.gen(function*() {
      const tokenizer = yield* Tokenizer
      const text = "a €👋🏽"
      const ids = yield* tokenizer.encode(trusted(text))
      assert.strictEqual(Buffer.concat(Array.from(ids, tokenizer.tokenBytes)).toString(), text)
      assert.strictEqual(Buffer.from(tokenizer.tokenBytes(4089)).toString(), "<|im_end|>")
      assert.strictEqual(tokenizer.tokenBytes(4089), tokenizer.tokenBytes(4089))
      for (const id of [-1, 4096, 1 << 30, 0.5]) assert.lengthOf(tokenizer.tokenBytes(id), 0)
      const shown = tokenizer.decoder(true)
      assert.deepStrictEqual([tokenizer.decoder().push(4089), shown.push(4089)], ["", "<|im_end|>"])
    }).pipe(Effect.provide(GgufTokenizer.layer(vocabulary))))

  it.live("puts BOS first where the vocabulary wants it and the caller does not object", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make({ ...vocabulary, addBos: true })
      const bos = vocabulary.bosId ?? -1
      const plain = Array.from(yield* tokenizer.encode({ ...trusted("hi"), addBos: false }))
      assert.notInclude(plain, bos)
      assert.deepStrictEqual(Array.from(yield* tokenizer.encode(trusted("hi"))), [bos, ...plain])
      assert.deepStrictEqual(Array.from(yield* tokenizer.encode(trusted("<|endoftext|>hi"))), [bos, ...plain])
    }))

  it.live("refuses an unknown pre-tokenizer by name", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(GgufTokenizer.make({ ...vocabulary, pre: "martian" }))
      assert.deepEqual([error.reason, error.subject], ["Unsupported", "tokenizer.ggml.pre"])
      assert.include(error.message, "martian")
    }))

  it.live("round-trips text with untrusted special tokens and lone surrogates", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make(vocabulary)
      const text = "<|im_start|>user\na \ud800 <|im_end|> b 👋🏽\u0000<|im_end|>\n"
      const at = text.indexOf("<|im_end|> b")
      const ids = yield* tokenizer.encode({ text, untrusted: [[at, at + "<|im_end|>".length]] })
      assert.deepEqual(Array.from(ids).filter((id) => id >= 4087), [4088, 4089])
      const decoder = tokenizer.decoder()
      assert.strictEqual(
        Array.from(ids, (id) => decoder.push(id)).join("") + decoder.end(),
        "user\na \ufffd <|im_end|> b 👋🏽\u0000\n"
      )
      assert.strictEqual(decoder.push(-1) + decoder.push(4096) + decoder.push(2 ** 31), "")
    }))

  it.live("encodes nothing to nothing", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make(vocabulary)
      assert.strictEqual((yield* tokenizer.encode(trusted(""))).length, 0)
    }))
})

describe("BOS", () => {
  const idsOf = (of: Vocabulary, prompt: { readonly text: string; readonly untrusted: ReadonlyArray<readonly [number, number]> }) =>
    Effect.map(Effect.flatMap(GgufTokenizer.make(of), (tokenizer) => tokenizer.encode(prompt)), (ids) => Array.from(ids))

  for (const name of ["llama-bpe", "spm-llama"]) {
    it.live(`of ${name} comes first exactly once, and not from a user's text`, () =>
      Effect.gen(function*() {
        const found = goldenVocabulary(name)
        assert.isDefined(found)
        const bosId = found.bosId ?? -1
        const bos = found.tokens[bosId] ?? ""
        const count = (ids: ReadonlyArray<number>) => ids.filter((id) => id === bosId).length
        const bare = yield* idsOf(found, trusted("Hi"))
        const written = yield* idsOf(found, trusted(`${bos}Hi`))
        const user = yield* idsOf(found, { text: `${bos}Hi`, untrusted: [[0, bos.length]] })
        assert.deepEqual(written, bare)
        assert.deepEqual([bare[0], user[0], count(bare), count(user)], [bosId, bosId, 1, 1])
        assert.isAbove(user.length, bare.length)
        assert.deepEqual(yield* idsOf(found, trusted("")), [bosId])
        assert.strictEqual(count(yield* idsOf({ ...found, addBos: false }, trusted("Hi"))), 0)
      }))
  }

  it.live("is put first without a key where the kind of tokenizer says so", () =>
    Effect.gen(function*() {
      for (const [name, expected] of [["spm-llama", true], ["llama-bpe", true], ["qwen2", false], ["gpt-2", false]] as const) {
        const found = goldenVocabulary(name)
        assert.isDefined(found)
        assert.strictEqual((yield* idsOf({ ...found, addBos: undefined }, trusted("Hi")))[0] === found.bosId, expected, name)
      }
    }))
})

describe("long prompts", () => {
  it.live("have the ids of their parts, from the cache too", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make(vocabulary)
      const turns = (count: number) => Array.from({ length: count }, (_, i) => `<|im_start|>user\n${prose(3000, i)}<|im_end|>\n`).join("")
      const expected = (text: string) =>
        Array.from(encoder.join(encoder.specials.cut(text, []).map((part) => typeof part === "number" ? part : encoder.encodeText(part))))
      for (const count of [2, 40, 40, 41]) {
        assert.deepEqual(Array.from(yield* tokenizer.encode(trusted(turns(count)))), expected(turns(count)))
      }
    }))

  it.live("leave the event loop to others meanwhile, and end when they are interrupted", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make(vocabulary)
      const fiber = yield* Effect.forkChild(tokenizer.encode(trusted("ab".repeat(1_000_000))), { startImmediately: true })
      yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
      // The next huge piece does not wait for the one that was given up.
      assert.isAbove((yield* tokenizer.encode(trusted("ba".repeat(150_000)))).length, 0)
    }))
})

describe("untrusted text", () => {
  it.live("becomes no control token and no tag, even where merges or the whole-piece rule would make one", () =>
    Effect.gen(function*() {
      const found = goldenVocabulary("llama-bpe")
      assert.isDefined(found)
      const id = (text: string) => found.tokens.indexOf(text)
      const [word = "", ...merge] = found.merges.filter((one) => /^[a-z]+ [a-z]+$/.test(one)).map((one) => one.replace(" ", ""))
      const other = merge.find((one) => !one.includes(word) && !word.includes(one)) ?? ""
      const types = found.types.slice()
      types[id(word)] = 3
      types[id(other)] = 4
      const tokenizer = yield* GgufTokenizer.make({ ...found, types, addBos: false })
      const ids = yield* tokenizer.encode({
        text: `${word} ${other}`,
        untrusted: [[0, word.length], [word.length + 1, word.length + 1 + other.length]]
      })
      assert.notInclude(Array.from(ids), id(word))
      assert.notInclude(Array.from(ids), id(other))
      const decoder = tokenizer.decoder()
      assert.strictEqual(Array.from(ids, (one) => decoder.push(one)).join(""), `${word} ${other}`)
      assert.include(Array.from(yield* tokenizer.encode(trusted(word))), id(word))
    }))
})
