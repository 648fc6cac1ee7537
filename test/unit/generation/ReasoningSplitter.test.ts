import { assert, describe, it } from "@effect/vitest"
import { ReasoningSplitter } from "../../../src/generation/ReasoningSplitter.ts"

const split = (pieces: ReadonlyArray<string>, startsInReasoning: boolean) => {
  let text = ""
  let reasoning = ""
  const splitter = new ReasoningSplitter(
    (piece) => text += piece,
    (piece) => reasoning += piece,
    startsInReasoning ? { _tag: "Open", closing: "</think>" } : undefined
  )
  for (const piece of pieces) splitter.push(piece)
  splitter.end()
  return { text, reasoning }
}

const cases: ReadonlyArray<readonly [output: string, startsInReasoning: boolean, reasoning: string, text: string]> = [
  ["Hello", false, "", "Hello"],
  ["", false, "", ""],
  ["", true, "", ""],
  ["<think>why</think>Because", false, "why", "Because"],
  ["\n <think>\n\nwhy\n\nnot\n</think>\n\nBecause\n", false, "why\n\nnot", "Because\n"],
  ["why\n</think>\n\nBecause", true, "why", "Because"],
  ["<think>\n\n</think>\n\nBecause", false, "", "Because"],
  ["<think>never closed \n", false, "never closed ", ""],
  ["<think>\n  - a\n    - b\n</think>\n\n    code", false, "  - a\n    - b", "    code"],
  ["<think> \n </think>\nBecause", false, "", "Because"],
  ["never closed </thin", true, "never closed </thin", ""],
  ["a < b and <think>no</think>", false, "", "a < b and <think>no</think>"],
  ["<thing> is no tag", false, "", "<thing> is no tag"],
  ["<thi", false, "", "<thi"],
  ["  indented", false, "", "  indented"],
  ["  ", false, "", "  "],
  ["a </think> b </think> c", true, "a ", " b </think> c"],
  ["<think>a << </ </think></think>", false, "a << </ ", "</think>"],
  ["[THINK]why[/THINK]Because", false, "why", "Because"],
  ["<seed:think>why</seed:think>Because", false, "why", "Because"],
  ["<think>why</think>\n\n\n", false, "why", ""]
]

describe("ReasoningSplitter", () => {
  it("gives the same parts however the output is cut", () => {
    for (const [output, startsInReasoning, reasoning, text] of cases) {
      const expected = { text, reasoning }
      assert.deepStrictEqual(split([output], startsInReasoning), expected, JSON.stringify(output))
      assert.deepStrictEqual(split([...output], startsInReasoning), expected, `${JSON.stringify(output)} by character`)
      for (let at = 1; at < output.length; at++) {
        assert.deepStrictEqual(
          split([output.slice(0, at), output.slice(at)], startsInReasoning),
          expected,
          `${JSON.stringify(output)} at ${at}`
        )
      }
    }
  })

  it("hands text on at once when no tag is possible", () => {
    const seen: Array<string> = []
    const splitter = new ReasoningSplitter((piece) => seen.push(piece), () => {})
    splitter.push("Hi")
    splitter.push(" <think")
    assert.deepStrictEqual(seen, ["Hi", " <think"])
  })
})
