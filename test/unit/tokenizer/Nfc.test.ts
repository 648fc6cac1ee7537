import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { nfc } from "../../../src/tokenizer/Nfc.ts"

describe("nfc", () => {
  it.prop(
    "is NFC",
    { text: Schema.String },
    ({ text }) => assert.strictEqual(nfc(`e\u0301${text}\u0323`), `e\u0301${text}\u0323`.normalize("NFC"))
  )

  it("composes around a run of marks that is too long, and not the run", () => {
    const run = "\u0301\u0316".repeat(200)
    assert.strictEqual(nfc(`e\u0301a${run}.e\u0301`), `\u00e9a${run}.\u00e9`)
    assert.strictEqual(nfc(`a${run.slice(0, 255)}`), `a${run.slice(0, 255)}`.normalize("NFC"))
  })

  it("takes a million marks", () => {
    const run = "\u0301\u0316".repeat(500_000)
    assert.strictEqual(nfc(run), run)
  })
})
