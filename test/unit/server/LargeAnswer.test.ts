import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { jsonPieces, Listed } from "../../../src/server/LargeAnswer.ts"

const written = (value: Record<string, unknown>) => Array.from(jsonPieces(value)).join("")

describe("an answer in pieces", () => {
  it.prop(
    "is the JSON text of the whole",
    { text: Schema.String, count: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3000 })), flag: Schema.NullOr(Schema.Boolean) },
    ({ count, flag, text }) => {
      const list = Array.from({ length: count }, (_, i) => i % 3 === 0 ? { id: i, piece: text } : i)
      const value = { [text]: text, flag, nothing: null, nested: { a: [1, "\"", text] } }
      assert.strictEqual(written({ ...value, list: new Listed(count, (i) => list[i]) }), JSON.stringify({ ...value, list }))
    },
    { arbitrary: { runs: 50 } }
  )

  it("cuts no character of two units, and keeps lone halves as JSON.stringify does", () => {
    for (
      const text of [
        `x${"👋🏽".repeat(40_000)}`,
        "👋🏽".repeat(40_000),
        `${"a".repeat(32 * 1024 - 1)}\ud800${"\udc00".repeat(3)}`,
        "\ud800".repeat(70_000)
      ]
    ) {
      assert.strictEqual(written({ text }), JSON.stringify({ text }))
      for (const piece of jsonPieces({ text })) assert.isAtMost(piece.length, 6 * 32 * 1024)
    }
    assert.strictEqual(written({}), "{}")
  })
})
