import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  type CommandHandler,
  CommandReader,
  encodeCancel,
  encodeClose,
  encodeLoad,
  encodeSubmit,
  maxCommandBytes
} from "../../../src/engine/Commands.ts"
import type { NativeLoadOptions, NativeSubmit } from "../../../src/engine/Native.ts"
import { ProtocolError } from "../../../src/engine/Packets.ts"
import { cut, join, random } from "./chunks.ts"

const read = (chunks: Iterable<Uint8Array>): ReadonlyArray<unknown> => {
  const heard: Array<unknown> = []
  const handler: CommandHandler = {
    load: (options) => heard.push(["load", options]),
    submit: (request) => heard.push(["submit", request]),
    cancel: (id) => heard.push(["cancel", id]),
    close: () => heard.push(["close"])
  }
  const reader = new CommandReader(handler)
  for (const chunk of chunks) reader.push(chunk)
  return heard
}

const load: NativeLoadOptions = { path: "/models/ä \"x\".gguf", threads: 0, slots: 4, contextLength: 0, kvType: "f16", batchTokens: 256 }

const U32 = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff_ffff }))
const Token = Schema.Int.check(Schema.isBetween({ minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }))
const Request = Schema.Struct({
  id: U32,
  tokens: Schema.Array(Token),
  stopTokens: Schema.Array(Token),
  temperature: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
  seed: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  logitBias: Schema.Array(Schema.Tuple([Token, Schema.Finite])),
  grammar: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })))
})

const positive = (value: number): number => value === 0 ? 0 : value // JSON has no -0

const submit = (request: typeof Request.Type): NativeSubmit => ({
  id: request.id,
  tokens: Int32Array.from(request.tokens),
  stopTokens: Int32Array.from(request.stopTokens),
  maxTokens: 17,
  temperature: positive(request.temperature),
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  repetitionPenalty: 1.1,
  frequencyPenalty: 0.1,
  presencePenalty: -0.2,
  repetitionWindow: 256,
  seed: request.seed,
  ...(request.grammar.length === 0 ? {} : { grammar: Uint8Array.from(request.grammar), greedySyntax: request.grammar.length % 2 === 0 }),
  logitBias: request.logitBias.map(([token, bias]) => [positive(token), positive(bias)] as const)
})

describe("CommandReader", () => {
  it.prop(
    "reads what was encoded, however the stream is cut",
    { requests: Schema.Array(Request), sizes: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2000 }))) },
    ({ requests, sizes }) => {
      const submits = requests.map(submit)
      const bytes = join([
        encodeLoad(load),
        ...submits.flatMap((request) => [encodeSubmit(request), encodeCancel(request.id)]),
        encodeClose()
      ])
      const expected = [
        ["load", load],
        ...submits.flatMap((request) => [["submit", request], ["cancel", request.id]]),
        ["close"]
      ]
      assert.deepStrictEqual(read(cut(bytes, sizes)), expected)
      assert.deepStrictEqual(read([bytes]), expected)
    },
    { arbitrary: { runs: 300 } }
  )

  it("copies tokens out of the stream's buffer, from an array that is itself a view", () => {
    const tokens = Int32Array.from([9, 1, 2, 3, 9]).subarray(1, 4)
    const request = { ...submit({ id: 1, tokens: [], stopTokens: [], temperature: 0, seed: 0, logitBias: [], grammar: [] }), tokens }
    const bytes = encodeSubmit(request)
    const heard: Array<NativeSubmit> = []
    const reader = new CommandReader({ load() {}, submit: (read) => heard.push(read), cancel() {}, close() {} })
    reader.push(bytes)
    bytes.fill(0xff)
    assert.deepStrictEqual(heard, [{ ...request, tokens: Int32Array.from([1, 2, 3]) }])
  })

  const changed = (command: Uint8Array, offset: number, value: number): Uint8Array => {
    const copy = command.slice()
    new DataView(copy.buffer).setUint32(offset, value, true)
    return copy
  }
  const request = encodeSubmit(submit({ id: 1, tokens: [1, 2], stopTokens: [3], temperature: 0, seed: 0, logitBias: [], grammar: [] }))
  const hostile: ReadonlyArray<readonly [string, Uint8Array, RegExp]> = [
    ["a command above the size limit", changed(encodeClose(), 0, maxCommandBytes + 1), /above the limit/],
    ["an empty command", Uint8Array.from([0, 0, 0, 0]), /unknown/],
    ["an unknown kind", changed(encodeClose(), 4, 77), /kind 77/],
    ["a submit without its counts", changed(encodeClose(), 4, 2), /unknown/],
    ["a header beyond the end", changed(request, 8, 0xffff_ffff), /do not fit/],
    ["stop tokens beyond the end", changed(request, 12, 0xffff_ffff), /do not fit/],
    ["a grammar beyond the end", changed(request, 16, 0xffff_ffff), /do not fit/],
    ["JSON that is none", changed(encodeLoad(load), 8, 0), /JSON/],
    ["a header that is no object", changed(request, 8, 0), /JSON/]
  ]
  for (const [name, bytes, message] of hostile) {
    it(`refuses ${name}`, () => assert.throws(() => read(cut(bytes, [3])), ProtocolError, message))
  }

  it("answers damaged commands with a ProtocolError or a command", () => {
    const next = random(3)
    let refused = 0
    for (let round = 0; round < 3000; round++) {
      const bytes = join([request, encodeCancel(5)])
      for (let flips = 1 + next() % 4; flips > 0; flips--) bytes[next() % bytes.length] = next() & 255
      try {
        read(cut(bytes, [1 + next() % 100]))
      } catch (error) {
        assert.instanceOf(error, ProtocolError)
        assert.isUndefined(error.cause)
        refused++
      }
    }
    assert.isAbove(refused, 300)
  })
})
