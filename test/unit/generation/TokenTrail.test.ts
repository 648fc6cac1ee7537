import { assert, describe, it } from "@effect/vitest"
import type { OutputEvent } from "../../../src/domain/OutputEvent.ts"
import { OutputPipeline } from "../../../src/generation/OutputPipeline.ts"
import { TokenTrail } from "../../../src/generation/TokenTrail.ts"
import { Utf8Stream } from "../../../src/tokenizer/StreamDecoder.ts"
import { TokenPieces } from "../../../src/tokenizer/TokenPieces.ts"
import * as TokenTypes from "../../../src/tokenizer/TokenTypes.ts"

interface Options {
  readonly startsInReasoning?: boolean
  readonly stopStrings?: ReadonlyArray<string>
  readonly minTokens?: number
  readonly includeStop?: boolean
}

const byte = (value: number) => `<0x${value.toString(16).toUpperCase().padStart(2, "0")}>`

/** Runs pieces through a pipeline whose vocabulary is those pieces; "<0xE2>" is a byte. Says which piece each shown text brought. */
const run = (pieces: ReadonlyArray<string>, options: Options = {}) => {
  const types = Int32Array.from(pieces, (piece) => /^<0x..>$/.test(piece) ? TokenTypes.byte : TokenTypes.userDefined)
  const vocabulary = new TokenPieces({
    model: "llama",
    tokens: pieces,
    types,
    scores: undefined,
    merges: [],
    pre: undefined,
    bosId: undefined,
    eosId: undefined,
    eotId: undefined,
    eomId: undefined,
    unknownId: undefined,
    addBos: undefined,
    addSpacePrefix: undefined
  })
  const events: Array<OutputEvent> = []
  const pipeline = new OutputPipeline({
    decoder: new Utf8Stream(vocabulary),
    reasoning: options.startsInReasoning === true ? { _tag: "Open", closing: "</think>" } : { _tag: "None" },
    stopStrings: options.stopStrings ?? [],
    ...options,
    trail: new TokenTrail((token) => vocabulary.bytes(token)),
    emit: (event) => events.push(event)
  })
  for (const token of pieces.keys()) {
    if (pipeline.push(token, { logprob: -token, top: [{ token: 0, logprob: -1 }] })) break
  }
  pipeline.end()
  const texts = events.flatMap((event) => event._tag === "Text" ? [event] : [])
  return {
    text: texts.map((event) => event.text).join(""),
    shown: texts.map((event): readonly [string, ReadonlyArray<number>] => [event.text, (event.logprobs ?? []).map(({ token }) => token)]),
    logprobs: texts.flatMap((event) => event.logprobs ?? [])
  }
}

describe("TokenTrail", () => {
  it("gives every token with its own text, bytes and alternatives", () => {
    const { logprobs, shown } = run(["Hello", ",", " you"])
    assert.deepStrictEqual(shown, [["Hello", [0]], [",", [1]], [" you", [2]]])
    assert.deepStrictEqual(logprobs[2], {
      token: 2,
      bytes: new Uint8Array(Buffer.from(" you")),
      logprob: -2,
      top: [{ token: 0, bytes: new Uint8Array(Buffer.from("Hello")), logprob: -1 }]
    })
  })

  it("keeps the tokens of a split character together, with exact bytes", () => {
    const parts = [...Buffer.from("€")].map(byte)
    const { logprobs, shown } = run(["a", ...parts, "b"])
    assert.deepStrictEqual(shown, [["a", [0]], ["€", [1, 2, 3]], ["b", [4]]])
    assert.deepStrictEqual(Buffer.concat(logprobs.map(({ bytes }) => bytes)).toString(), "a€b")
  })

  it("counts an unfinished character at the end", () => {
    assert.deepStrictEqual(run(["a", byte(0xe2), byte(0x82)]).shown, [["a", [0]], ["\ufffd", [1, 2]]])
  })

  it("leaves reasoning, its tags and the white space around them out", () => {
    assert.deepStrictEqual(run(["<think>", "x", "</", "think", ">", "\n\n", "think", "!"]).shown, [["think", [6]], ["!", [7]]])
    assert.deepStrictEqual(run(["k", "k</think>\n\nk", "k"], { startsInReasoning: true }).shown, [["k", [1]], ["k", [2]]])
  })

  it("leaves a stop string out, and gives a token once that is shown in two pieces", () => {
    const options = { stopStrings: ["END"] }
    assert.deepStrictEqual(run(["one E", "ND", "x"], options).shown, [["one ", [0]]])
    assert.deepStrictEqual(run(["one E", "N", "o"], options).shown, [["one ", [0]], ["ENo", [1, 2]]])
    assert.deepStrictEqual(run(["E", "E", "N", "D"], options).shown, [["E", [0]]])
    assert.deepStrictEqual(run(["a", "E", "N"], options).shown, [["a", [0]], ["EN", [1, 2]]])
    assert.deepStrictEqual(run(["E", "NDE"], { stopStrings: ["NDE"] }).shown, [["E", [0]]])
  })

  it("keeps a stop string where that was asked for", () => {
    assert.deepStrictEqual(run(["one", " E", "ND more"], { stopStrings: ["END"], includeStop: true }).shown, [
      ["one", [0]],
      [" ", [1]],
      ["END", [2]]
    ])
  })

  it("sees no stop string before the least number of tokens", () => {
    assert.strictEqual(run([".", ".", "a", ".", "b"], { stopStrings: ["."], minTokens: 2 }).text, "..a")
    assert.strictEqual(run([".", ".", ".", "b"], { stopStrings: ["."], minTokens: 2 }).text, "..")
  })

  it("loses and repeats no token of plain text, whatever the stop strings hold back", () => {
    let state = 7
    const random = (below: number) => (state = (state * 1103515245 + 12345) % 2 ** 31) % below
    for (let i = 0; i < 300; i++) {
      const pieces = Array.from({ length: 1 + random(12) }, () => "ab€".repeat(3).slice(random(5), 5 + random(4)))
      const { shown, text } = run(pieces, { stopStrings: ["abab€b", "€€", "bbb"].slice(random(3)) })
      const tokens = shown.flatMap(([, own]) => own)
      assert.deepStrictEqual(tokens, tokens.map((_, index) => index))
      assert.isTrue(pieces.slice(0, tokens.length).join("").startsWith(text))
      assert.strictEqual(tokens.length, pieces.filter((_, index) => pieces.slice(0, index).join("").length < text.length).length)
    }
  })
})
