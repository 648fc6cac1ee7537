import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TemplateError } from "../../../../src/domain/Errors.ts"
import { detectSyntax } from "../../../../src/generation/tools/detectSyntax.ts"
import { generic } from "../../../../src/generation/tools/Generic.ts"
import { hermes } from "../../../../src/generation/tools/Hermes.ts"
import { ChatTemplate } from "../../../../src/prompt/ChatTemplate.ts"
import { cuts, piped, random } from "./runs.ts"

/** Output of a pipeline that is given these texts, one as each token's. */
const outputOf = (pieces: ReadonlyArray<string>) => piped(pieces, { syntax: hermes })

const strings = [
  "",
  "Köln",
  "\u{1f600}\u{1f1e9}\u{1f1ea}",
  "</tool_call>",
  "<tool_call>{\"name\": \"x\"}</tool_call>",
  "a\"b\\c/d\n\t\r\b\f",
  "{}[],:",
  "```\n<tool_call>",
  "\u2028\u0000\u007f",
  "C:\\temp\\new",
  "<think>",
  " "
]

/** A JSON value that follows from the numbers. */
const randomValue = (next: () => number, depth: number): unknown => {
  const pick = Math.floor(next() * (depth === 0 ? 6 : 8))
  if (pick === 0) return null
  if (pick === 1) return next() < 0.5
  if (pick === 2) return Math.floor(next() * 2000) - 1000
  if (pick === 3) return (next() - 0.5) * 10 ** Math.floor(next() * 40 - 20)
  if (pick < 6) return strings[Math.floor(next() * strings.length)]
  const size = Math.floor(next() * 4)
  return pick === 6 ? Array.from({ length: size }, () => randomValue(next, depth - 1)) : randomObject(next, depth - 1)
}

const randomObject = (next: () => number, depth: number): Record<string, unknown> =>
  Object.fromEntries(
    Array.from(
      { length: Math.floor(next() * 4) },
      (_, index) => [`${strings[Math.floor(next() * strings.length)]}${index}`, randomValue(next, depth)]
    )
  )

describe("Hermes calls", () => {
  it("come back as they were written: 10000 random ones", () => {
    const next = random(2)
    for (let round = 0; round < 10_000; round++) {
      const count = 1 + Math.floor(next() * 3)
      const calls = Array.from({ length: count }, (_, index) => {
        const value = randomObject(next, 3)
        const text = next() < 0.5 ? JSON.stringify(value) : JSON.stringify(value, null, 2)
        return { name: `tool_${index}${next() < 0.1 ? "\"é" : ""}`, text }
      })
      const raw = calls.map(({ name, text }) => {
        const fields = [`"name": ${JSON.stringify(name)}`, `"arguments": ${text}`]
        if (next() < 0.3) fields.reverse()
        if (next() < 0.2) fields.splice(Math.floor(next() * 3), 0, "\"id\": 1.5e3")
        return `<tool_call>\n{${fields.join(next() < 0.5 ? ", " : ",\n")}}\n</tool_call>`
      })
      const before = next() < 0.3 ? "Let me look.\n" : ""
      const output = before + raw.join("\n")
      const result = outputOf(next() < 0.1 ? [...output] : cuts(output, next))
      assert.strictEqual(result.text, before.trim())
      assert.deepStrictEqual(result.calls, calls)
    }
  })

  it("read the same at every place of a cut", () => {
    const output = `A < b\n<tool_call>\n{"arguments": {"a": "</tool_call>\u{1f600}\\u00e9"}, "name": "f"}\n</tool_call> between ` +
      `<tool_call>{"name":"g","arguments":{"x":[{"y":"}"}],"n":-1.5e+3,"t":true}}</tool_call>\n<tool_call>{"name": 5}</tool_call> after`
    const whole = outputOf([output])
    assert.deepStrictEqual(whole, {
      text: "A < b\nbetween\n<tool_call>{\"name\": 5}</tool_call> after",
      reasoning: "",
      calls: [
        { name: "f", text: "{\"a\": \"</tool_call>\u{1f600}\\u00e9\"}" },
        { name: "g", text: "{\"x\":[{\"y\":\"}\"}],\"n\":-1.5e+3,\"t\":true}" }
      ]
    })
    for (let first = 0; first <= output.length; first++) {
      for (let second = first; second <= output.length; second += 7) {
        assert.deepStrictEqual(
          outputOf([output.slice(0, first), output.slice(first, second), output.slice(second)]),
          whole,
          `${first} ${second}`
        )
      }
    }
  })

  it("start as soon as the name is known, and their arguments follow piece by piece", () => {
    const events: Array<string> = []
    const parser = hermes.parser({
      text: (text) => events.push(`text ${text}`),
      start: (name) => events.push(`start ${name}`),
      argument: (text) => events.push(`argument ${text}`),
      end: () => events.push("end")
    }, [])
    for (const piece of ["<tool_call>\n{\"name\": \"f\", \"argu", "ments\": {\"a", "\": \"xx", "yy", "\"}", "}\n</tool", "_call>"]) {
      parser.push(piece)
    }
    parser.end()
    assert.deepStrictEqual(events, ["start f", "argument {\"a", "argument \": \"xx", "argument yy", "argument \"}", "end"])
  })

  it("that go wrong after they started keep what the model wrote", () => {
    const cases: ReadonlyArray<readonly [raw: string, text: string, call: string]> = [
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": tru}}</tool_call> x", "x", "{\"a\": tru}}"],
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": \"\\d+\"}}</tool_call>", "", "{\"a\": \"\\d+\"}}"],
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": 1}\n</tool_call>\nx", "x", "{\"a\": 1}"],
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": 1}}}\n</tool_call>", "}\n</tool_call>", "{\"a\": 1}"],
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": 1", "", "{\"a\": 1"],
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": oops</tool_ca", "", "{\"a\": oops</tool_ca"],
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": \"x\ny\"}}</tool_call>", "", "{\"a\": \"x\\ny\"}"]
    ]
    for (const [raw, text, call] of cases) {
      for (const pieces of [[raw], [...raw]]) {
        assert.deepStrictEqual(outputOf(pieces), { text, reasoning: "", calls: [{ name: "f", text: call }] }, raw)
      }
    }
  })

  it("that are none come back whole: 5000 broken ones", () => {
    const next = random(3)
    const good = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"b\"]}}\n</tool_call>"
    for (let round = 0; round < 5_000; round++) {
      const at = Math.floor(next() * 22)
      const raw = good.slice(0, at) + "!" + good.slice(at + (next() < 0.5 ? 1 : 0))
      const result = outputOf(cuts(raw, next))
      if (result.calls.length === 0) assert.strictEqual(result.text, raw)
      else assert.include(["f", "!f", "f!", "!"], result.calls[0]?.name)
    }
  })
})

describe("the syntax of a model", () => {
  it.effect("is read off an earlier call as its template shows it, and generic where it shows none", () =>
    Effect.gen(function*() {
      const template = (text: string) => ({
        render: () => Effect.succeed({ text, untrusted: [] }),
        startsInReasoning: () => false
      })
      assert.strictEqual((yield* detectSyntax(template("mbxuser <tool_call>\n{\"name\": \"mbxtool\""))).syntax, hermes)
      assert.strictEqual((yield* detectSyntax(template("mbxuser"))).syntax, generic)
      const refusing = { ...template(""), render: () => Effect.fail(new TemplateError({ message: "no tools" })) }
      assert.strictEqual((yield* detectSyntax(refusing)).syntax, generic)
      assert.isTrue(hermes.matches("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"))
      assert.isFalse(hermes.matches("<tool_call>\n<function=f>\n</function>\n</tool_call>"))
    }))
})

describe("a template of Hermes models", () => {
  it.effect("shows earlier calls in a way that reads back as the same calls", () =>
    Effect.gen(function*() {
      const text =
        "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}" +
        "{% for c in m.tool_calls or [] %}\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}" +
        "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
      const template = yield* ChatTemplate.make({
        template: text,
        bos: undefined,
        eos: "<|im_end|>",
        specialTexts: ["<|im_start|>", "<|im_end|>"]
      })
      const calls = [
        { id: "1", name: "f", arguments: "{\"z\": \"</tool_call>\", \"a\": [1, {\"b\": null}]}" },
        { id: "2", name: "g", arguments: "{}" }
      ]
      const prompt = yield* template.render({
        messages: [{ role: "user", content: "q" }, { role: "assistant", content: "Let me see.", toolCalls: calls }],
        tools: [{ name: "f", parameters: { type: "object" } }],
        templateVariables: {}
      })
      const turn = /<\|im_start\|>assistant\n([^]*?)<\|im_end\|>/.exec(prompt.text)?.[1] ?? ""
      assert.isTrue(hermes.matches(turn))
      assert.strictEqual((yield* detectSyntax(template)).syntax, hermes)
      const read = outputOf([...turn])
      assert.strictEqual(read.text, "Let me see.")
      assert.deepStrictEqual(read.calls, calls.map((call) => ({ name: call.name, text: call.arguments })))
    }))
})
