import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { FrameReader, FrameWriter, maxFrameBytes, type RequestHandler, type WorkerHandler } from "../../../src/engine/Frames.ts"
import { ProtocolError } from "../../../src/engine/Packets.ts"
import { cut, join, random } from "./chunks.ts"

type Heard = ReadonlyArray<unknown>

class Recorder implements RequestHandler, WorkerHandler {
  readonly heard: Array<Heard> = []
  token(...said: Parameters<RequestHandler["token"]>) {
    this.heard.push(["token", ...said])
  }
  stopToken(...said: Parameters<RequestHandler["stopToken"]>) {
    this.heard.push(["stopToken", ...said])
  }
  progress(...said: Parameters<RequestHandler["progress"]>) {
    this.heard.push(["progress", ...said])
  }
  done(...said: Parameters<RequestHandler["done"]>) {
    this.heard.push(["done", ...said])
  }
  failed(...said: Parameters<RequestHandler["failed"]>) {
    this.heard.push(["failed", ...said])
  }
  blocks(...said: Parameters<RequestHandler["blocks"]>) {
    this.heard.push(["blocks", ...said])
  }
  loading(...said: Parameters<WorkerHandler["loading"]>) {
    this.heard.push(["loading", ...said])
  }
  ready(...said: Parameters<WorkerHandler["ready"]>) {
    this.heard.push(["ready", ...said])
  }
  loadFailed(...said: Parameters<WorkerHandler["loadFailed"]>) {
    this.heard.push(["loadFailed", ...said])
  }
}

const read = (chunks: Iterable<Uint8Array>): ReadonlyArray<Heard> => {
  const recorder = new Recorder()
  const reader = new FrameReader(recorder, recorder)
  for (const chunk of chunks) reader.push(chunk)
  return recorder.heard
}

const counts = { promptTokens: 7, cachedTokens: 3, generatedTokens: 0xffff_ffff, queueMs: 0, promptMs: 1.25, generationMs: 1e9 / 3 }

/** Writes the records that `choices` stand for, in frames of a few records, and says what a reader should hear. */
const write = (choices: ReadonlyArray<number>): { readonly bytes: Uint8Array; readonly expected: ReadonlyArray<Heard> } => {
  const writer = new FrameWriter()
  const expected = new Recorder()
  const frames: Array<Uint8Array> = []
  for (const choice of choices) {
    const id = choice >>> 0
    for (const target of [writer, expected]) {
      switch (id % 10) {
        case 0:
          target.token(id, choice | 0)
          break
        case 1:
          target.token(id, choice | 0, {
            logprob: -(id % 64) / 4,
            top: Array.from({ length: id % 21 }, (_, i) => ({ token: i, logprob: -i / 8 }))
          })
          break
        case 9:
          target.stopToken(id, choice | 0)
          break
        case 2:
          target.progress(id, id >>> 3, id)
          break
        case 3:
          target.done(id, (["stop", "length", "cancelled"] as const)[id % 3] ?? "stop", counts)
          break
        case 4:
          target.failed(id, "rejected", "é".repeat(id % 700), ...(id % 20 < 10 ? [] : ["f".repeat(id % 7)]))
          break
        case 5:
          target.loading((id % 100) / 100)
          break
        case 6:
          target.ready("{".repeat(id % 6000))
          break
        case 7:
          if (id % 20 < 10) target.loadFailed("")
          else target.blocks(id >>> 4, id, id % 100, 100)
          break
      }
    }
    if (id % 10 === 8) frames.push(writer.take()) // now and then an empty frame
  }
  return { bytes: join([...frames, writer.take()]), expected: expected.heard }
}

describe("FrameReader", () => {
  it("reads the documented bytes", () => {
    const bytes = [16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0xf0, 0xfe, 0xff, 0xff, 0xff]
    assert.deepStrictEqual(read([Uint8Array.from(bytes)]), [["token", 0xf000_0005, -2]])
  })

  it("reads the documented bytes of a scored token and a stop token", () => {
    const scored = [36, 0, 0, 0, 1, 0, 0, 0, 5, 2, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0xbf, 5, 0, 0, 0, 0, 0, 0, 0xbf]
      .concat([9, 0, 0, 0, 0, 0, 0, 0xc0])
    assert.deepStrictEqual(read([Uint8Array.from(scored)]), [
      ["token", 7, 5, { logprob: -0.5, top: [{ token: 5, logprob: -0.5 }, { token: 9, logprob: -2 }] }]
    ])
    const stop = [16, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0]
    assert.deepStrictEqual(read([Uint8Array.from(stop)]), [["stopToken", 7, 2]])
  })

  it("reads the documented bytes of the blocks in use", () => {
    const blocks = [28, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 64, 0, 0, 0, 3, 0, 0, 0, 0x2c, 1, 0, 0]
    assert.deepStrictEqual(read([Uint8Array.from(blocks)]), [["blocks", 5, 64, 3, 300]])
  })

  it.prop(
    "hears the same however the stream is cut",
    { choices: Schema.Array(Schema.Int), sizes: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3000 }))) },
    ({ choices, sizes }) => {
      const { bytes, expected } = write(choices)
      assert.deepStrictEqual(read(cut(bytes, sizes)), expected)
      assert.deepStrictEqual(read([bytes]), expected)
    },
    { arbitrary: { runs: 300 } }
  )

  it("hears the same byte by byte and in unaligned views", () => {
    const next = random(1)
    const { bytes, expected } = write(Array.from({ length: 400 }, next))
    assert.deepStrictEqual(read(cut(bytes, [1])), expected)
    for (const shift of [1, 2, 3]) {
      const shifted = new Uint8Array(bytes.length + shift)
      shifted.set(bytes, shift)
      assert.deepStrictEqual(read(cut(bytes, [shift]).concat()), expected)
      assert.deepStrictEqual(read([shifted.subarray(shift)]), expected)
    }
  })

  const token = (): Uint8Array => {
    const writer = new FrameWriter()
    writer.token(1, 2)
    return writer.take()
  }
  const changed = (frame: Uint8Array, offset: number, value: number): Uint8Array => {
    const copy = frame.slice()
    new DataView(copy.buffer).setUint32(offset, value, true)
    return copy
  }
  const failed = (message: string): Uint8Array => {
    const writer = new FrameWriter()
    writer.failed(1, "invalid", message)
    return writer.take()
  }
  const done = (): Uint8Array => {
    const writer = new FrameWriter()
    writer.done(1, "stop", { ...counts, promptMs: NaN })
    return writer.take()
  }
  const scored = (logprob: number): Uint8Array => {
    const writer = new FrameWriter()
    writer.token(1, 2, { logprob: -1, top: [{ token: 3, logprob }] })
    return writer.take()
  }
  const hostile: ReadonlyArray<readonly [string, Uint8Array, RegExp]> = [
    ["more alternatives than bytes", changed(scored(-1), 8, 5 | (2 << 8)), /ends inside a record/],
    ["a log probability above 0", scored(0.5), /0.5 where a log probability/],
    ["a log probability that is no number", scored(NaN), /NaN where a log probability/],
    ["an infinite log probability", scored(-Infinity), /-Infinity where a log probability/],
    ["a length above the limit", changed(token(), 0, maxFrameBytes + 1), /above the limit/],
    ["the largest length", changed(token(), 0, 0xffff_ffff), /above the limit/],
    ["a frame without a record count", Uint8Array.from([3, 0, 0, 0, 0, 0, 0]), /no record count/],
    ["more records than bytes", changed(token(), 4, 2), /ends inside a record/],
    ["the largest record count", changed(token(), 4, 0xffff_ffff), /ends inside a record/],
    ["fewer records than bytes", changed(token(), 4, 0), /after its last record/],
    ["an unknown kind", changed(token(), 8, 9), /unknown kind 9/],
    ["reserved bits", changed(token(), 8, 0x0001_0001), /reserved/],
    ["an unknown finish reason", changed(done(), 8, 3 | (3 << 8)), /unknown finish reason 3/],
    ["a time that is no number", done(), /NaN/],
    ["an unknown error kind", changed(failed("x"), 8, 4 | (200 << 8)), /unknown error kind 200/],
    ["a refusal without the field to blame", changed(failed("x"), 8, 7 | (6 << 8)), /ends inside a record/],
    ["a text longer than its frame", changed(failed("x"), 16, 5), /ends inside a record/],
    ["a text of the largest length", changed(failed("x"), 16, 0xffff_ffff), /ends inside a record/]
  ]
  for (const [name, bytes, message] of hostile) {
    it(`refuses ${name}`, () => {
      assert.throws(() => read([bytes]), ProtocolError, message)
      assert.throws(() => read(cut(bytes, [1])), ProtocolError, message)
    })
  }

  it("stays broken", () => {
    const recorder = new Recorder()
    const reader = new FrameReader(recorder, recorder)
    assert.throws(() => reader.push(changed(token(), 8, 9)), ProtocolError)
    assert.throws(() => reader.push(token()), ProtocolError)
    assert.deepStrictEqual(recorder.heard, [])
  })

  it("refuses a worker's record from an engine in this process", () => {
    const writer = new FrameWriter()
    writer.loading(0.5)
    assert.throws(() => new FrameReader(new Recorder()).push(writer.take()), ProtocolError, /no worker/)
  })

  it("answers random bytes with a ProtocolError or nothing", () => {
    const next = random(2)
    let refused = 0
    for (let round = 0; round < 3000; round++) {
      const { bytes } = write(Array.from({ length: 5 }, next))
      for (let flips = 1 + next() % 4; flips > 0; flips--) bytes[next() % bytes.length] = next() & 255
      try {
        read(cut(bytes, [1 + next() % 200]))
      } catch (error) {
        assert.instanceOf(error, ProtocolError)
        assert.isUndefined(error.cause)
        refused++
      }
    }
    assert.isAbove(refused, 300)
  })
})
