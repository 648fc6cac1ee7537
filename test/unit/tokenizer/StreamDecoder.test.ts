import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Vocabulary } from "../../../src/models/ModelMetadata.ts"
import { Utf8Stream } from "../../../src/tokenizer/StreamDecoder.ts"
import { TokenPieces } from "../../../src/tokenizer/TokenPieces.ts"

/** A vocabulary of the 256 bytes, and of some pieces that are whole or cut characters. */
const cut = ["a", " the", "\u2581x", "é", "👋", "👋🏽"]
const vocabulary: Vocabulary = {
  model: "llama",
  pre: undefined,
  tokens: [
    ...Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
    ...cut,
    "<s>",
    "<think>",
    "<unused>"
  ],
  types: Int32Array.from([...Array.from({ length: 256 }, () => 6), ...cut.map(() => 1), 3, 4, 5]),
  scores: undefined,
  merges: [],
  bosId: undefined,
  eosId: undefined,
  eotId: undefined,
  eomId: undefined,
  unknownId: undefined,
  addBos: undefined,
  addSpacePrefix: undefined
}
const pieces = new TokenPieces(vocabulary)

const bytesOfInterest = [
  0x00,
  0x20,
  0x41,
  0x7f,
  0x80,
  0x8f,
  0x90,
  0x9f,
  0xa0,
  0xbf,
  0xc0,
  0xc1,
  0xc2,
  0xdf,
  0xe0,
  0xe2,
  0xed,
  0xef,
  0xf0,
  0xf3,
  0xf4,
  0xf5,
  0xff
]

const check = (ids: ReadonlyArray<number>) => {
  const reference = new TextDecoder("utf-8", { ignoreBOM: true })
  const stream = new Utf8Stream(pieces)
  for (const id of ids) assert.strictEqual(stream.push(id), reference.decode(pieces.bytes(id), { stream: true }), ids.join(" "))
  assert.strictEqual(stream.end(), reference.decode(), ids.join(" "))
}

describe("Utf8Stream", () => {
  it("equals the platform's streaming decoder for every three bytes that matter, with anything after them", () => {
    for (const a of bytesOfInterest) for (const b of bytesOfInterest) for (const c of bytesOfInterest) check([a, b, c, 0x80])
  })

  it.prop(
    "equals it for any tokens",
    { ids: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 128, maximum: vocabulary.tokens.length - 1 }))) },
    ({ ids }) => check(ids),
    { arbitrary: { runs: 1000 } }
  )

  it("keeps a byte order mark", () => check([0xef, 0xbb, 0xbf, 0x41, 0xef, 0xbb, 0xbf]))

  it("shows user-defined tokens, and control tokens only on demand", () => {
    const ids = ["<s>", "<think>", "<unused>", "\u2581x"].map((token) => vocabulary.tokens.indexOf(token))
    const text = (stream: Utf8Stream) => ids.map((id) => stream.push(id)).join("") + stream.end()
    assert.strictEqual(text(new Utf8Stream(pieces)), "<think> x")
    assert.strictEqual(text(new Utf8Stream(new TokenPieces(vocabulary, true))), "<s><think> x")
  })

  it("holds a character back over tokens without text", () => {
    const stream = new Utf8Stream(pieces)
    const control = vocabulary.tokens.indexOf("<s>")
    assert.deepEqual([0xf0, 0x9f, control, 0x91, 0x8b].map((id) => stream.push(id)), ["", "", "", "", "👋"])
  })
})
