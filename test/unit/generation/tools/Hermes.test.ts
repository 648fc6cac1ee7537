import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { TemplateError } from "../../../../src/domain/Errors.ts"
import { OutputCollector } from "../../../../src/domain/Output.ts"
import { OutputPipeline } from "../../../../src/generation/OutputPipeline.ts"
import { detectSyntax } from "../../../../src/generation/tools/detectSyntax.ts"
import { hermes } from "../../../../src/generation/tools/Hermes.ts"
import { ChatTemplate } from "../../../../src/prompt/ChatTemplate.ts"

const root = join(import.meta.dirname, "../../../..")
const places = [join(root, "test/fixtures/golden/toolcalls/hermes.json"), join(root, "../shared/golden/toolcalls/hermes.json")]
const golden = places.find((path) => existsSync(path))

interface Case {
  readonly id: string
  readonly template?: string
  readonly prompt_tail: string
  readonly raw: string
  readonly expect: {
    readonly content: string
    readonly reasoning: string | null
    readonly tool_calls: ReadonlyArray<{ readonly name: string; readonly arguments: unknown }>
  }
}

/** Numbers from 0 to 1 that follow from the seed. */
const random = (seed: number) => () => {
  seed = seed + 0x6d2b79f5 | 0
  let hash = Math.imul(seed ^ seed >>> 15, 1 | seed)
  hash = hash + Math.imul(hash ^ hash >>> 7, 61 | hash) ^ hash
  return ((hash ^ hash >>> 14) >>> 0) / 2 ** 32
}

/** Output of a pipeline that is given these texts, one as each token's. */
const outputOf = (
  pieces: ReadonlyArray<string>,
  options: { readonly startsInReasoning?: boolean; readonly stops?: Array<string> } = {}
) => {
  const output = new OutputCollector()
  let ids = 0
  const pipeline = new OutputPipeline({
    decoder: { push: (token) => pieces[token] ?? "", end: () => "" },
    startsInReasoning: options.startsInReasoning ?? false,
    stopStrings: options.stops ?? [],
    tools: { syntax: hermes, newId: () => `call_${ids++}`, parallel: true },
    emit: (event) => {
      if (event._tag !== "Finish") output.add(event)
    }
  })
  pieces.forEach((_, token) => pipeline.push(token))
  pipeline.end()
  return { text: output.text, reasoning: output.reasoning, calls: output.toolCalls.map(({ arguments: text, name }) => ({ name, text })) }
}

const cuts = (text: string, next: () => number): Array<string> => {
  const pieces: Array<string> = []
  for (let at = 0; at < text.length;) {
    const length = 1 + Math.floor(next() * 12)
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

/** Cases in which a streamed call cannot be taken back: it is one for good once its arguments have begun. */
const started: Record<string, { readonly content: string; readonly calls: ReadonlyArray<{ name: string; text: string }> }> = {
  "cut-in-arguments": { content: "Wait.", calls: [{ name: "get_weather", text: "{\"city\": \"Bo" }] }
}

describe("Hermes transcripts", () => {
  it.skipIf(golden === undefined)("read the same whole, by characters and in random pieces", () => {
    const cases: ReadonlyArray<Case> = JSON.parse(readFileSync(golden ?? "", "utf8")).cases
    assert.isAbove(cases.length, 50)
    const next = random(1)
    for (const { expect, id, prompt_tail, raw } of cases) {
      const own = started[id]
      const ways = [[raw], [...raw], ...Array.from({ length: 20 }, () => cuts(raw, next))]
      for (const pieces of ways) {
        const { calls, reasoning, text } = outputOf(pieces, { startsInReasoning: /<think>\s*$/.test(prompt_tail) })
        assert.strictEqual(text, own?.content ?? expect.content, id)
        assert.strictEqual(reasoning, expect.reasoning ?? "", id)
        if (own !== undefined) assert.deepStrictEqual(calls, own.calls, id)
        else {
          assert.deepStrictEqual(calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.text) })), [...expect.tool_calls], id)
        }
      }
    }
  })
})

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
    })
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

  it("take time in proportion to the output", () => {
    const timeOf = (text: string) => {
      const started = performance.now()
      outputOf(cuts(text, random(4)))
      return performance.now() - started
    }
    const repeats: ReadonlyArray<readonly [head: string, unit: string]> = [
      ["", "<tool_call>{\",\":\""],
      ["", "<tool_call>"],
      ["", "<"],
      ["", "\n"],
      ["", "```\n"],
      ["<tool_call>{\"name\":\"f\",\"arguments\":", "{\"a\":"],
      ["<tool_call>", " "],
      ["<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": oops", "</tool_"],
      ["<tool_call>{\"arguments\":{\"a\":\"", "<tool_call>{\""]
    ]
    for (const [head, unit] of repeats) {
      const text = (size: number) => head + unit.repeat(Math.ceil(size / unit.length))
      timeOf(text(20_000))
      const small = Math.min(timeOf(text(50_000)), timeOf(text(50_000)))
      const large = Math.min(timeOf(text(400_000)), timeOf(text(400_000)))
      assert.isBelow(large, Math.max(2_000, small * 24), `${JSON.stringify(head + unit)}: ${small} ms, then ${large} ms`)
    }
  })
})

describe("the syntax of a model", () => {
  it.effect("is read off an earlier call as its template shows it, and Hermes where it shows none", () =>
    Effect.gen(function*() {
      const template = (text: string) => ({
        render: () => Effect.succeed({ text, untrusted: [] }),
        startsInReasoning: () => false
      })
      for (const text of ["mbxuser <tool_call>\n{\"name\": \"mbxtool\"", "mbxuser"]) {
        assert.strictEqual(yield* detectSyntax(template(text)), hermes)
      }
      const refusing = { ...template(""), render: () => Effect.fail(new TemplateError({ message: "no tools" })) }
      assert.strictEqual(yield* detectSyntax(refusing), hermes)
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
      assert.strictEqual(yield* detectSyntax(template), hermes)
      const read = outputOf([...turn])
      assert.strictEqual(read.text, "Let me see.")
      assert.deepStrictEqual(read.calls, calls.map((call) => ({ name: call.name, text: call.arguments })))
    }))
})
