import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Prompts from "../../../src/generation/Prompts.ts"
import { ChatTemplate } from "../../../src/prompt/ChatTemplate.ts"
import { type RenderedPrompt, Tokenizer } from "../../../src/tokenizer/Tokenizer.ts"
import { layerTemplate, layerTokenizer } from "../server/harness.ts"

/** Prompts of a vocabulary with the marks for filling in, and what its tokenizer was given. */
const start = Effect.gen(function*() {
  const given: Array<RenderedPrompt> = []
  const tokenizer = yield* Tokenizer
  const prompts = Prompts.make(yield* ChatTemplate, {
    ...tokenizer,
    specialTexts: ["<fim_prefix>", "<fim_middle>", "<fim_suffix>"],
    encode: (prompt) => {
      given.push(prompt)
      return tokenizer.encode(prompt)
    }
  })
  return { prompts, given, tokenizer }
}).pipe(Effect.provide([layerTokenizer(), layerTemplate]))

describe("Prompts", () => {
  it.effect("trust a text's special tokens only where the request says so", () =>
    Effect.gen(function*() {
      const { given, prompts } = yield* start
      yield* prompts.encode({ _tag: "Text", text: "abc" })
      yield* prompts.encode({ _tag: "Text", text: "abc", parseSpecial: true, addBos: false })
      assert.deepStrictEqual(given, [{ text: "abc", untrusted: [[0, 3]] }, { text: "abc", untrusted: [], addBos: false }])
    }))

  it.effect("fill in where the vocabulary has marks for it, and else blame the suffix", () =>
    Effect.gen(function*() {
      const { given, prompts, tokenizer } = yield* start
      const prompt = { _tag: "Text", text: "a", parseSpecial: true, suffix: "b" } as const
      yield* prompts.encode(prompt)
      assert.deepStrictEqual(given.map(({ text }) => text), ["<fim_prefix>a<fim_suffix>b<fim_middle>"])
      const without = Prompts.make(yield* ChatTemplate, tokenizer)
      const error = yield* Effect.flip(without.encode(prompt))
      assert.deepInclude(error, { _tag: "UnsupportedFeature", field: "suffix" })
    }).pipe(Effect.provide(layerTemplate)))

  it.effect("give the texts of conversations and tokens", () =>
    Effect.gen(function*() {
      const { prompts } = yield* start
      const conversation = { messages: [{ role: "user", content: "hi" } as const], tools: [], templateVariables: { enable_thinking: true } }
      assert.strictEqual(yield* prompts.render(conversation), "user:hi|<think>")
      const { reasoning, tokens } = yield* prompts.encode({ _tag: "Chat", conversation })
      assert.deepStrictEqual(reasoning, { _tag: "Open", closing: "</think>" })
      assert.strictEqual(yield* prompts.textOf(tokens), "user:hi|<think>")
    }))
})
