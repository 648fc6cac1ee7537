import { assert, describe, it } from "@effect/vitest"
import { syntaxes } from "../../../../src/generation/tools/syntaxes.ts"
import { reasoningState, usualReasoning } from "../../../../src/prompt/Reasoning.ts"
import { cuts, piped, random, transcripts } from "./runs.ts"

/**
 * Longer than what any transcript writes of calls that turn out to be none. What was sent cannot be taken back: the text of
 * llama3-json/json-then-text begins with the whole of another transcript, so nobody who hands on a piece of the one before its end reads the other.
 */
const patience = 256

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
        const unheld = piped([raw], options)
        for (const pieces of ways) {
          const read = piped(pieces, { ...options, patience })
          assert.strictEqual(read.text, expect.content, label)
          assert.strictEqual(read.reasoning, expect.reasoning ?? "", label)
          assert.deepStrictEqual(
            read.calls.map(({ name, text }) => ({ name, arguments: JSON.parse(text) })),
            expect.tool_calls.map(({ name, arguments: own }) => ({ name, arguments: own })),
            label
          )
          assert.deepStrictEqual(piped(pieces, options), unheld, label)
        }
      }
    })
  }
})
