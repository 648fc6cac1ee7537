import { assert, describe, it } from "@effect/vitest"
import { syntaxes } from "../../../../src/generation/tools/syntaxes.ts"
import { cuts, random, settled } from "./runs.ts"

/** Pieces of every syntax, and what they trip over. */
const fragments = [
  "<tool_call>",
  "</tool_call>",
  "<function=f>",
  "<function=",
  "</function>",
  "<parameter=a>",
  "<parameter=n>",
  "</parameter>",
  "<arg_key>",
  "</arg_key>",
  "<arg_value>",
  "</arg_value>",
  "[TOOL_CALLS]",
  "[ARGS]",
  "[CALL_ID]",
  "<|python_tag|>",
  "<|tool_call>",
  "<tool_call|>",
  "call:f",
  "<|\"|>",
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁call▁begin｜>",
  "<｜tool▁sep｜>",
  "<｜tool▁call▁end｜>",
  "<｜tool▁calls▁end｜>",
  "<｜DSML｜function_calls>\n",
  "<｜DSML｜invoke name=\"f\">",
  "<｜DSML｜parameter name=\"a\" string=\"true\">",
  "<｜DSML｜parameter name=\"n\" string=\"false\">",
  "</｜DSML｜parameter>\n",
  "</｜DSML｜invoke>",
  "</｜DSML｜function_calls>",
  "｜DSML｜",
  "function",
  "<|start|>assistant",
  "<|channel|>",
  "<|message|>",
  "<|end|>",
  "<|call|>",
  "<|constrain|>json",
  "analysis",
  "commentary to=functions.f",
  "{\"name\": \"f\", \"arguments\": {\"a\": \"x\"}}",
  "{\"name\": \"f\", \"parameters\": {",
  "{\"a\": ",
  "f(a=\"x\")",
  "f(",
  "a=",
  "\"\"\"",
  "'",
  "```json\n",
  "\n```\n",
  "\n",
  " ",
  "{",
  "}",
  "[",
  "]",
  "(",
  ")",
  ",",
  ":",
  ";",
  "\"",
  "\\",
  "\\u12",
  "1e5",
  "-",
  "true",
  "None",
  "f",
  "a",
  "😀",
  "\ud83d",
  "é",
  "<",
  "|",
  ">",
  "\u0000"
]

const tools = [{ name: "f", parameters: { type: "object", properties: { a: { type: "string" }, n: { type: ["integer", "null"] } } } }]

const rounds = Number(process.env["MASHBOX_FUZZ_ROUNDS"] ?? 3_000)

const pick = <A>(items: ReadonlyArray<A>, next: () => number): A | undefined => items[Math.floor(next() * items.length)]

describe("random output", () => {
  for (const syntax of syntaxes) {
    it(`of ${syntax.name} loses no text, whatever it is cut into: ${rounds} inputs`, () => {
      const next = random(syntax.name.length * 7919)
      for (let round = 0; round < rounds; round++) {
        const length = 1 + Math.floor(next() * 24)
        // Some of the pieces again and again make it likely that they come in an order that means something.
        const own = Array.from({ length: 6 }, () => pick(fragments, next) ?? "")
        let raw = ""
        for (let i = 0; i < length; i++) raw += (next() < 0.6 ? pick(own, next) : pick(fragments, next)) ?? ""
        const whole = settled([raw], { syntax, tools })
        if (syntax.marksReasoning !== true) {
          const tagged = /^\s*(<think>|<\|channel>thought)/.test(raw)
          if (!tagged) assert.strictEqual(whole.source, raw, JSON.stringify(raw))
          // A wrapper of DeepSeek without calls is markup of none.
          if (!tagged && whole.calls.length === 0 && !syntax.name.startsWith("deepseek")) {
            assert.strictEqual(whole.text, raw, JSON.stringify(raw))
          }
        } else assert.strictEqual(whole.source.replaceAll("\n", ""), raw.replaceAll("\n", ""), JSON.stringify(raw))
        for (const call of whole.calls) JSON.parse(call.text)
        assert.deepStrictEqual(settled(cuts(raw, next, 5), { syntax, tools }), whole, JSON.stringify(raw))
      }
    })
  }
})

describe("the work of a parser", () => {
  const heads = [
    "",
    "<tool_call>",
    "<tool_call>{\"name\":\"f\",\"arguments\":",
    "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": oops",
    "<tool_call>{\"arguments\":{\"a\":\"",
    "<tool_call><function=f><parameter=a>",
    "<tool_call><function=f><parameter=n>",
    "<tool_call>f<arg_key>a</arg_key><arg_value>",
    "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{\"a\":",
    "[TOOL_CALLS]f[ARGS]{\"a\":",
    "<|tool_call>call:f{a:",
    "<|tool_call>call:f{a:<|\"|>",
    "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\":",
    "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" string=\"true\">",
    "<｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"n\" string=\"false\">{\"a\": [",
    "<|python_tag|>[f(a=",
    "[f(a=\"\"\"",
    "{\"name\": \"f\", \"parameters\": {\"a\": ",
    "<|channel|>commentary to=functions.f<|message|>{\"a\": ",
    "<|channel|>"
  ]

  it("grows with the output as a line does, for all syntaxes and every fragment over and over", () => {
    for (const syntax of syntaxes) {
      const workOf = (text: string) => {
        const parser = syntax.parser({ text: () => {}, start: () => {}, argument: () => {}, end: () => {} }, tools)
        for (let at = 0; at < text.length; at += 7) parser.push(text.slice(at, at + 7))
        parser.end()
        return parser.work
      }
      for (const head of heads) {
        for (const fragment of fragments) {
          const text = head + fragment.repeat(Math.ceil(400 / fragment.length))
          assert.isAtMost(workOf(text), 6 * text.length + 600, JSON.stringify([syntax.name, head, fragment]))
        }
      }
      const long = "</parameter>\n</arg_value> <tool_call>{\"name\": [TOOL_CALLS]<|channel|>x ".repeat(4_000)
      assert.isAtMost(workOf(long), 6 * long.length + 600, syntax.name)
    }
  })
})
