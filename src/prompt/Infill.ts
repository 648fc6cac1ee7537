import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"

/** What marks the text before, the text after, and the place to fill in, as models were trained on it: in this order. */
const families = [
  ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"], // Qwen2.5-Coder, Qwen3, CodeGemma
  ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"], // StarCoder, Granite
  ["<fim-prefix>", "<fim-suffix>", "<fim-middle>"], // SantaCoder
  ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"] // DeepSeek-Coder
] as const

/** A prompt that makes the model fill in between two texts; undefined where its vocabulary has no tokens for that. Special tokens in the texts stay text. */
export const infill = (specialTexts: ReadonlyArray<string>, prefix: string, suffix: string): RenderedPrompt | undefined => {
  const marks = families.find((family) => family.every((mark) => specialTexts.includes(mark)))
  if (marks === undefined) return undefined
  const [before, after, middle] = marks
  const prefixEnd = before.length + prefix.length
  const suffixStart = prefixEnd + after.length
  return {
    text: before + prefix + after + suffix + middle,
    untrusted: [[before.length, prefixEnd], [suffixStart, suffixStart + suffix.length]]
  }
}
