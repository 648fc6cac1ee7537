import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { CompletionsLogprobs, logprobsJson, refusedField, tokenOptions, wireLogprobs } from "../../../src/dialect/OpenAiTokens.ts"
import { parse } from "../../../src/dialect/WireRequest.ts"

const token = (id: number, bytes: ReadonlyArray<number>, logprob: number) => ({ token: id, bytes: Uint8Array.from(bytes), logprob })
const text = (id: number, value: string, logprob: number) => token(id, [...Buffer.from(value)], logprob)

/** "€" in two tokens after an "é" of one, then a character beyond 16 bits. */
const split = [
  { ...text(1, "é", -1), top: [text(1, "é", -1), token(9, [0xff], -3)] },
  { ...token(2, [0xe2, 0x82], -2), top: [] },
  { ...token(3, [0xac], -0.5), top: [] },
  { ...text(4, "😀", -4), top: [] },
  { ...text(5, "!", -5), top: [] }
]

describe("wireLogprobs", () => {
  it("gives exact bytes, and a text for bytes that have none", () => {
    const wire = wireLogprobs(split)
    assert.deepStrictEqual(wire[0], {
      token: "é",
      logprob: -1,
      bytes: [0xc3, 0xa9],
      top_logprobs: [{ token: "é", logprob: -1, bytes: [0xc3, 0xa9] }, { token: "\\xff", logprob: -3, bytes: [0xff] }]
    })
    assert.deepStrictEqual(wire.map((own) => own.token), ["é", "\\xe2\\x82", "\\xac", "😀", "!"])
    assert.strictEqual(Buffer.from(wire.flatMap(({ bytes }) => bytes)).toString(), "é€😀!")
  })
})

describe("logprobsJson", () => {
  it("is the JSON of the same", () => {
    for (const tokens of [split, split.slice(0, 1), [], [{ ...text(7, "\"\\\n\u2028", -Infinity), top: [] }]]) {
      assert.deepStrictEqual(JSON.parse(logprobsJson(tokens)), wireLogprobs(tokens))
    }
  })
})

describe("CompletionsLogprobs", () => {
  it("counts characters, and puts the parts of one at its place", () => {
    const whole = new CompletionsLogprobs(true).push(split)
    assert.deepStrictEqual(whole.text_offset, [0, 1, 1, 2, 3])
    assert.deepStrictEqual(whole.tokens, ["é", "bytes:\\xe2\\x82", "bytes:\\xac", "😀", "!"])
    assert.deepStrictEqual(whole.top_logprobs?.[0], { "é": -1, "bytes:\\xff": -3 })
    assert.deepStrictEqual(whole.top_logprobs?.[1], { "bytes:\\xe2\\x82": -2 })
    const tracker = new CompletionsLogprobs(false)
    assert.deepStrictEqual(split.flatMap((own) => tracker.push([own]).text_offset), whole.text_offset)
    assert.isNull(tracker.push([]).top_logprobs)
  })
})

describe("tokenOptions", () => {
  it("says nothing where nothing was said", () => {
    assert.isUndefined(tokenOptions({}, undefined))
    assert.deepStrictEqual(tokenOptions({}, 0), { topLogprobs: 0 })
    assert.deepStrictEqual(
      tokenOptions(
        {
          min_tokens: 1,
          ignore_eos: true,
          stop_token_ids: [5],
          include_stop_str_in_output: true,
          skip_special_tokens: false,
          return_token_ids: true
        },
        undefined
      ),
      { minTokens: 1, ignoreEnd: true, stopTokens: [5], includeStop: true, showSpecial: true, returnTokens: true }
    )
  })
})

describe("refusedField", () => {
  const refused = (body: object) => refusedField(Result.getOrThrow(parse(JSON.stringify(body))))?.field

  it("names what must not be ignored, unless it is off", () => {
    assert.strictEqual(refused({ a: 1, prompt_embeds: {} }), "prompt_embeds")
    assert.strictEqual(refused({ use_beam_search: true }), "use_beam_search")
    for (const body of [{}, { use_beam_search: false }, { prompt_embeds: null }, { toString: 1, constructor: 2 }]) {
      assert.isUndefined(refused(body))
    }
  })
})
