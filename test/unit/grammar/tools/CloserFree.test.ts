import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { compile } from "../../../../src/grammar/Lark.ts"
import { CloserFree, type Exclusion } from "../../../../src/grammar/tools/CloserFree.ts"

const cases: ReadonlyArray<readonly [expected: Exclusion, lark: string, closer?: string]> = [
  ["needless", "start: /[a-z ]+/"],
  ["needless", "start: \"(\" start \")\" | /[^<]+/"],
  ["needless", "start: (/[a-o]/ | \"</\" | \">\")*"],
  ["whole", "start: /(.|\\n)*/"],
  ["whole", "start: a b\na: \"<\" | \"x\"\nb: \"/parameter>\""],
  ["whole", "start: NAME*\nNAME: /[^x]/"],
  ["parts", "start: \"(\" start \")\" | \"[\" /[^\\]]*/ \"]\"", "</p>"],
  ["parts", "start: \"{\" start* \"}\" | STRING\nSTRING: /'[^']*'/"],
  ["impossible", "start: /[^x]/ start | \"x\""],
  ["impossible", "start: \"<\" start \"/parameter>\" | \"x\""]
]

describe("a closing tag in the texts of a grammar", () => {
  for (const [expected, lark, closer = "</parameter>"] of cases) {
    it(`${expected}: ${JSON.stringify(lark)}`, () => {
      assert.strictEqual(new CloserFree(Result.getOrThrow(compile(lark)), closer).exclusion, expected)
    })
  }

  it("is looked for in time that grows with the grammar as a line does", () => {
    const rules = Array.from({ length: 60 }, (_, index) => `a${index}: a${index + 1} a${index + 1}`)
    const grammar = Result.getOrThrow(compile(`start: a0\n${rules.join("\n")}\na60: "<" | /[a-z>]/ | "/"`))
    assert.strictEqual(new CloserFree(grammar, "</parameter>").exclusion, "whole")
  })
})
