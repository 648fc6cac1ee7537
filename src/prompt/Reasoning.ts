import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"

const tags: ReadonlyArray<readonly [open: string, close: string]> = [
  ["<think>", "</think>"],
  ["<seed:think>", "</seed:think>"],
  ["[THINK]", "[/THINK]"]
]

/** Whether the template's own text at the end of the prompt opens a reasoning block and does not close it. */
export const startsInReasoning = (prompt: RenderedPrompt): boolean => {
  const own = prompt.text.slice(prompt.untrusted.at(-1)?.[1] ?? 0)
  return tags.some(([open, close]) => own.lastIndexOf(open) > own.lastIndexOf(close))
}
