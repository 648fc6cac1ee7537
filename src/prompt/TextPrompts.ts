import type { TextPrompt } from "../domain/GenerationRequest.ts"
import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"
import { infill } from "./Infill.ts"

/** A text prompt as the tokenizer takes it; undefined where it has a suffix and the vocabulary no tokens for that. */
export const renderText = (prompt: TextPrompt, specialTexts: ReadonlyArray<string>): RenderedPrompt | undefined => {
  const rendered = prompt.suffix === undefined
    ? { text: prompt.text, untrusted: prompt.parseSpecial === true ? [] : [[0, prompt.text.length] as const] }
    : infill(specialTexts, prompt.text, prompt.suffix)
  return rendered === undefined || prompt.addBos === undefined ? rendered : { ...rendered, addBos: prompt.addBos }
}
