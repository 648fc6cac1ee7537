import { assert, describe, it } from "@effect/vitest"
import { infill } from "../../../src/prompt/Infill.ts"

const qwen = ["<|fim_suffix|>", "<|fim_middle|>", "<|fim_prefix|>", "<|im_end|>"]

describe("infill", () => {
  it("puts the texts between the vocabulary's marks and trusts neither", () => {
    const prompt = infill(qwen, "a <|im_end|>", "<|fim_middle|>b")
    assert.strictEqual(prompt?.text, "<|fim_prefix|>a <|im_end|><|fim_suffix|><|fim_middle|>b<|fim_middle|>")
    assert.deepStrictEqual(prompt?.untrusted.map(([start, end]) => prompt.text.slice(start, end)), ["a <|im_end|>", "<|fim_middle|>b"])
    assert.strictEqual(infill(["<fim_prefix>", "<fim_suffix>", "<fim_middle>"], "", "x")?.text, "<fim_prefix><fim_suffix>x<fim_middle>")
  })

  it("is nothing without all three marks", () => {
    assert.isUndefined(infill([], "a", "b"))
    assert.isUndefined(infill(qwen.slice(1), "a", "b"))
  })
})
