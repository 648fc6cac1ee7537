import { assert, describe, it } from "@effect/vitest"
import { textFrames } from "../../../src/server/WebSocketFrames.ts"

/** The payloads of unmasked text frames that are whole messages. */
const read = (bytes: Buffer): ReadonlyArray<string> => {
  const payloads: Array<string> = []
  for (let at = 0; at < bytes.length;) {
    assert.strictEqual(bytes[at], 0x81)
    const short = bytes[at + 1] ?? 0
    const [length, start] = short < 126
      ? [short, at + 2]
      : short === 126
      ? [bytes.readUInt16BE(at + 2), at + 4]
      : [Number(bytes.readBigUInt64BE(at + 2)), at + 10]
    assert.isBelow(short, 128, "masked")
    assert.isTrue(short < 126 || length >= (short === 126 ? 126 : 0x1_0000), "the shortest form")
    payloads.push(bytes.toString("utf8", start, at = start + length))
  }
  return payloads
}

const bytesOf = (frames: string | Buffer) => typeof frames === "string" ? Buffer.from(frames, "latin1") : frames

describe("textFrames", () => {
  const lengths = [0, 1, 125, 126, 127, 255, 256, 0xffff, 0x1_0000, 0x1_0001, 0x123_4567]

  it("holds every message of every length, ASCII as a text", () => {
    const messages = lengths.map((length) => "x".repeat(length))
    const frames = textFrames(messages)
    assert.isString(frames)
    assert.isTrue(read(bytesOf(frames)).every((message, index) => message === messages[index]))
  })

  it("counts bytes, not characters", () => {
    const messages = ["é", "a", "\u{1f600}".repeat(40), "\u20ac".repeat(30_000), ""]
    assert.deepStrictEqual(read(bytesOf(textFrames(messages))), messages)
    assert.deepStrictEqual(bytesOf(textFrames([])).length, 0)
  })
})
