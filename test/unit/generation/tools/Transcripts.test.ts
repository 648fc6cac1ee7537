import { assert, describe, it } from "@effect/vitest"
import { syntaxes } from "../../../../src/generation/tools/syntaxes.ts"
import { reasoningState, usualReasoning } from "../../../../src/prompt/Reasoning.ts"
import { cuts, piped, random, type Read, settled, transcripts } from "./runs.ts"

/**
 * Transcripts that read otherwise in a stream, where what was sent cannot be taken back: all or nothing is only known at the end, and the first
 * calls were sent before.
 */
const streamed: Record<string, string> = {
  "llama3-json/json-then-text": "Done.",
  "llama3-json/good-then-malformed": "; {bad",
  "llama3-json/cut-last-brace": "",
  "llama3-pythonic/one-known-one-unknown": ", frob(x=1)]",
  "mistral-array/cut-last-bracket": "",
  "mistral-array/cut-after-first": ", {\"name\": \"get_w"
}

describe("transcripts of models", () => {
  for (const syntax of syntaxes) {
    if (syntax.name === "generic") continue
    const cases = transcripts(syntax.name)
    it.skipIf(cases === undefined)(`of ${syntax.name} read the same whole, by characters and in random pieces`, () => {
      const next = random(1)
      for (const { expect, id, prompt_tail, raw, tools } of cases ?? []) {
        const options = {
          syntax,
          reasoning: reasoningState({ text: prompt_tail, untrusted: [] }),
          // Laguna XS ends a turn with a line break of the format's own.
          format: { ...usualReasoning, turnEndsInBreak: id.startsWith("laguna-xs") },
          ...(tools === undefined ? {} : { tools })
        }
        const ways = [[raw], [...raw], raw.split(""), ...Array.from({ length: 20 }, () => cuts(raw, next))]
        const label = `${syntax.name}/${id}`
        const whole: Read = piped([raw], options)
        for (const pieces of ways) {
          assert.deepStrictEqual(piped(pieces, options), whole, label)
          const { source: _, ...read } = settled(pieces, options)
          const rest = streamed[label]
          if (rest !== undefined) {
            assert.strictEqual(whole.text, rest, label)
            continue
          }
          assert.strictEqual(read.text, expect.content, label)
          assert.strictEqual(read.reasoning, expect.reasoning ?? "", label)
          assert.deepStrictEqual(
            read.calls.map(({ name, text }) => ({ name, arguments: JSON.parse(text) })),
            expect.tool_calls.map(({ name, arguments: own }) => ({ name, arguments: own })),
            label
          )
          if (whole.calls.length === read.calls.length) assert.deepStrictEqual(whole, read, label)
        }
      }
    })
  }
})
