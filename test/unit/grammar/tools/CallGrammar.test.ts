import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { Tool } from "../../../../src/domain/Tool.ts"
import { syntaxes, syntaxNamed } from "../../../../src/generation/tools/syntaxes.ts"
import * as Derivatives from "../../../../src/grammar/Derivatives.ts"
import { encodeGrammar } from "../../../../src/grammar/IrEncoder.ts"
import { type CallGrammarOptions, compileCalls } from "../../../../src/grammar/tools/CallGrammar.ts"
import { GrammarWalk } from "../../../support/GrammarWalk.ts"
import { type Schema, valid } from "../../../support/SchemaOracle.ts"
import { cuts, piped, random } from "../../generation/tools/runs.ts"
import { type Call, openTools, parseExactly, tools, writers } from "./renderCalls.ts"

const walks = Number(process.env["MASHBOX_WALKS"] ?? 300)

const samples: Readonly<Record<string, string>> = { "arg-pairs": "<tool_call>mbxtool\n<arg_key>mbxkey</arg_key>" }

const options = (syntax: string, changes: Partial<CallGrammarOptions> = {}): CallGrammarOptions => ({
  syntax,
  sample: samples[syntax] ?? "",
  tools,
  required: true,
  parallel: true,
  token: () => undefined,
  ...changes
})

const inputSchema = { type: "object", properties: { input: { type: "string" } }, required: ["input"] }

const grammarOf = (own: CallGrammarOptions) => Result.getOrThrow(compileCalls(own))

const isArguments = (value: unknown): value is Call["arguments"] => typeof value === "object" && value !== null && !Array.isArray(value)

const isCall = (name: string, args: unknown): boolean => {
  const tool = [...tools, ...openTools].find((own) => own.name === name)
  const schema = (tool?.parameters ?? { type: "object" }) as Schema
  return tool !== undefined && valid(schema, args)
}

describe("grammars of calls", () => {
  for (const syntax of syntaxes) {
    const write = writers[syntax.name === "generic" ? "hermes" : syntax.name]
    if (write === undefined) throw new Error(`no writer for ${syntax.name}`)

    it(`${syntax.name}: what they generate reads back as valid calls that are written just so: ${walks} walks`, () => {
      const next = random(11)
      const grammar = grammarOf(options(syntax.name))
      encodeGrammar(grammar)
      const walk = new GrammarWalk(grammar, next)
      const read = (text: string, label: string) => {
        const { calls, text: rest } = piped(next() < 0.3 ? [...text] : cuts(text, next), { syntax, tools })
        if (syntax.name !== "harmony") assert.strictEqual(rest.trim(), "", label)
        return calls.map((call): Call => {
          const args = parseExactly(call.text)
          if (!isCall(call.name, JSON.parse(call.text)) || !isArguments(args)) throw new Error(`${call.name} ${call.text} out of ${label}`)
          return { name: call.name, arguments: args }
        })
      }
      let recent: Array<Call> = []
      for (let round = 0; round < walks; round++) {
        const text = walk.text()
        const label = JSON.stringify(text)
        const calls = read(text, label)
        assert.isAbove(calls.length, 0, label)
        const before = text.slice(0, text.length - write(calls).length)
        assert.strictEqual(before + write(calls), text)
        if (syntax.name === "harmony") continue
        assert.match(before, /^\n*$/)
        recent.push(...calls)
        if (recent.length < 10) continue
        for (const count of [2, 10]) {
          const several = write(recent.slice(0, count))
          assert.deepStrictEqual(read(several, several), recent.slice(0, count), several)
        }
        recent = []
      }
    })

    it(`${syntax.name}: keys that no schema names read back as they were allowed`, () => {
      const next = random(15)
      const walk = new GrammarWalk(grammarOf(options(syntax.name, { tools: openTools })), next)
      for (let round = 0; round < 100; round++) {
        const text = walk.text()
        const { calls } = piped([text], { syntax, tools: openTools })
        assert.isAbove(calls.length, 0)
        for (const call of calls) assert.isTrue(isCall(call.name, JSON.parse(call.text)), `${call.text} out of ${JSON.stringify(text)}`)
      }
    })

    it(`${syntax.name}: one call where there may be no others, and only of the tools that may be called`, () => {
      const next = random(12)
      const own = tools.filter(({ name }) => name === "note" || name === "ping")
      const walk = new GrammarWalk(grammarOf(options(syntax.name, { tools: own, parallel: false })), next)
      for (let round = 0; round < 50; round++) {
        const text = walk.text()
        const { calls } = piped([text], { syntax, tools })
        assert.strictEqual(calls.length, 1, text)
        assert.include(["note", "ping"], calls[0]?.name)
      }
    })

    it(`${syntax.name}: free output may hold calls, and those are valid`, () => {
      const next = random(13)
      const walk = new GrammarWalk(grammarOf(options(syntax.name, { required: false })), next)
      let some = 0
      for (let round = 0; round < 100; round++) {
        const text = walk.text()
        for (const call of piped([text], { syntax, tools }).calls) {
          some++
          assert.isTrue(isCall(call.name, JSON.parse(call.text)), text)
        }
      }
      assert.isAbove(some, 10)
    })
  }

  it("hold the input of a tool to its own grammar, in every syntax", () => {
    const lark = `start: begin line+ end
begin: "*** Begin \\"Patch\\"" LF
line: ("+" | "-" | " ") /[^\\n]{0,12}/ LF
end: "*** End Patch"
LF: /\\n/
`
    const patch = {
      name: "patch",
      parameters: inputSchema,
      inputGrammar: { syntax: "lark", definition: lark },
      field: "tools.0.format.definition"
    }
    const regex = { name: "digits", parameters: inputSchema, inputGrammar: { syntax: "regex", definition: "[0-9]{2}\\n(\"a\"|b)" } }
    const next = random(16)
    for (const syntax of syntaxes) {
      const walk = new GrammarWalk(grammarOf(options(syntax.name, { tools: [patch, regex] })), next)
      for (let round = 0; round < 20; round++) {
        const text = walk.text()
        const { calls } = piped([text], { syntax, tools: [patch, regex] })
        assert.isAbove(calls.length, 0, text)
        for (const { name, text: json } of calls) {
          const { input }: { readonly input: string } = JSON.parse(json)
          const form = name === "patch" ? /^\*\*\* Begin "Patch"\n(?:[+ -][^\n]{0,12}\n)+\*\*\* End Patch$/u : /^[0-9]{2}\n("a"|b)$/
          assert.match(input, form, `${syntax.name}: ${JSON.stringify(text)}`)
        }
      }
    }
    const bad = compileCalls(options("hermes", { tools: [{ ...patch, inputGrammar: { syntax: "lark", definition: "start: missing" } }] }))
    if (Result.isSuccess(bad)) throw new Error("not refused")
    assert.match(bad.failure.message, /^tools\.0\.format\.definition: /)
  })

  it("keep what would end an input out of it where nothing is escaped", () => {
    const ends: Readonly<Record<string, string>> = {
      "qwen-xml": "</parameter>",
      "arg-pairs": "</arg_value>",
      "deepseek-dsml": "</｜DSML｜parameter>",
      gemma4: "<|\"|>"
    }
    const closers = Object.values(ends)
    const parts = closers.flatMap((closer) => [closer, closer.slice(0, 2), closer.slice(2)]).map((part) => JSON.stringify(part)).join(" | ")
    const tool = (definition: string) => ({ name: "draw", parameters: inputSchema, inputGrammar: { syntax: "lark", definition } })
    for (const syntax of syntaxes) {
      const write = writers[syntax.name === "generic" ? "hermes" : syntax.name] ?? (() => "")
      const walked = (definition: string) => {
        const own = [tool(definition)]
        const walk = new GrammarWalk(grammarOf(options(syntax.name, { tools: own, parallel: false })), random(17))
        const inputs = Array.from({ length: 100 }, () => {
          const text = walk.text()
          const { calls } = piped([text], { syntax, tools: own })
          assert.strictEqual(calls.length, 1, text)
          const args: { readonly input: string } = JSON.parse(calls[0]?.text ?? "")
          assert.isTrue(text.endsWith(write([{ name: "draw", arguments: args }])), text)
          return args.input
        })
        return { inputs, walk }
      }
      const { inputs, walk } = walked(`start: "a" (${parts} | "x")* BODY?\nBODY: /(.|\\n){1,40}/`)
      for (const input of inputs) assert.match(input, /^a/)
      if (syntax.name !== "harmony") {
        const language = walk.language()
        for (const closer of closers) {
          const text = write([{ name: "draw", arguments: { input: `ax${closer}` } }])
          assert.strictEqual(Derivatives.matches(language, text), closer !== ends[syntax.name], `${syntax.name} ${closer}`)
        }
      }
      // A grammar that refers to itself is kept from it leaf by leaf, where none can end what another one begins.
      const nested = walked("start: \"(\" start \")\" | /\\[[^\\[\\]]*\\]/").inputs
      assert.isTrue(nested.some((input) => input.startsWith("((")), syntax.name)
    }
    const cut = compileCalls(
      options("qwen-xml", { tools: [tool("start: /[^x]/ start | \"x\"")] })
    )
    if (Result.isSuccess(cut)) throw new Error("not refused")
    assert.match(cut.failure.message, /^tools\.draw: a grammar that refers to itself cannot be kept from "<\/parameter>"/)
  })

  it("of bare syntaxes leave answers free that do not begin as a call does, and hold those that do", () => {
    const call = "{\"name\": \"note\", \"parameters\": {\"input\": \"x\"}}"
    const open = [
      "",
      "Hello.",
      "{\"city\": \"Bonn\"}",
      "{\"type\": \"text\", \"city\": 1}",
      "[1, 2]",
      "[a](b)",
      `See: ${call}`,
      "{",
      "[ping]",
      "{\"names\": 1}"
    ]
    const held = [
      "{\"name\": \"Ann\"}",
      " \n{ \"name\" : 5",
      "{\"arguments\": {}, \"name\": \"ping\"}",
      "{\"type\": \"function\", \"id\": \"a\\\"\", \"name\": \"ping\", \"parameters\": {}}",
      "{\"n\\u0061me\": \"ping\"}",
      "{\"name\": \"note\", \"parameters\": {\"input\": 5}}",
      `${call}; {bad`,
      `${call}\nDone.`,
      "[frob(x=1)]",
      "[ note(input=1)]",
      "<|python_tag|>print(1)",
      "So: <|python_tag|>{\"name\": \"frob\", \"parameters\": {}}"
    ]
    const own = [{ name: "note", parameters: inputSchema, inputGrammar: { syntax: "regex", definition: "x" } }]
    const pieces = [
      ..."{}[]():,;\"\\ \nx",
      ..."\"name\"|\"type\": \"function\", |\"id\":\"a\",|\"parameters\": |{\"input\": \"x\"}|note|[note(|input=|{\"name\": \"note\", |<|python_tag|>"
        .split("|"),
      call
    ]
    const calls: Readonly<Record<string, string>> = { "llama3-json": call, "llama3-pythonic": "[note(input=\"x\")]" }
    for (const [name, written] of Object.entries(calls)) {
      const language = new GrammarWalk(grammarOf(options(name, { tools: own, required: false })), random(18)).language()
      for (const text of [...open, written, `\n\n${written}`, `<|python_tag|>${written}`, `So: <|python_tag|>${written}`]) {
        assert.isTrue(Derivatives.matches(language, text), `${name} ${text}`)
      }
      for (const text of held) assert.isFalse(Derivatives.matches(language, text), `${name} ${text}`)
      // Whatever else the grammar lets through, no other call comes of it.
      const syntax = syntaxNamed(name)
      if (syntax === undefined) throw new Error(name)
      const next = random(19)
      let free = 0
      for (let round = 0; round < 600; round++) {
        const text = Array.from({ length: 1 + Math.floor(next() * 8) }, () => pieces[Math.floor(next() * pieces.length)]).join("")
        if (!Derivatives.matches(language, text)) continue
        free++
        for (const { name: called, text: args } of piped([text], { syntax, tools: own }).calls) {
          assert.deepStrictEqual([called, JSON.parse(args)], ["note", { input: "x" }], text)
        }
      }
      assert.isAbove(free, 100)
    }
  })

  it("take reasoning before the calls, opened by the prompt or by the model", () => {
    const next = random(14)
    const hermes = syntaxes.find(({ name }) => name === "hermes")
    if (hermes === undefined) throw new Error("no hermes")
    for (
      const [reasoning, state] of [
        [{ close: "</think>" }, { _tag: "Open", closing: "</think>" }],
        [{ open: "<think>", close: "</think>" }, { _tag: "None" }]
      ] as const
    ) {
      const walk = new GrammarWalk(grammarOf(options("hermes", { reasoning })), next)
      for (let round = 0; round < 30; round++) {
        const text = walk.text()
        const read = piped([text], { syntax: hermes, tools, reasoning: state })
        assert.isAbove(read.calls.length, 0, text)
        assert.strictEqual(read.text, "", text)
      }
    }
  })

  it("take reasoning before an answer in a format, which it does not hold", () => {
    const next = random(16)
    const format = { _tag: "JsonSchema", schema: { type: "object", properties: { a: { const: 1 } }, required: ["a"] }, field: "f" } as const
    for (const reasoning of [{ close: "</think>" }, { open: "<think>", close: "</think>" }]) {
      const walk = new GrammarWalk(grammarOf(options("hermes", { tools: [], required: false, format, reasoning })), next)
      let reasoned = 0
      for (let round = 0; round < 30; round++) {
        const text = walk.text()
        const at = text.lastIndexOf("</think>")
        if (at >= 0) reasoned++
        assert.deepInclude(JSON.parse(at < 0 ? text : text.slice(at + "</think>".length)), { a: 1 }, text)
      }
      assert.isAbove(reasoned, 0)
    }
  })

  it("use the vocabulary's own tokens for marks", () => {
    const ids = new Map([["<tool_call>", 7], ["</tool_call>", 8]])
    const own = tools.filter(({ name }) => name !== "quote")
    const grammar = grammarOf(options("hermes", { tools: own, token: (text) => ids.get(text) }))
    const json = JSON.stringify(grammar)
    assert.include(json, `{"kind":"token","ids":[7]}`)
    assert.include(json, `{"kind":"token","ids":[8]}`)
    assert.notInclude(json, "<tool_call>")
    const free = JSON.stringify(grammarOf(options("hermes", { tools: own, token: (text) => ids.get(text), required: false })))
    assert.include(free, `"until":["<tool_call>",{"tokens":[7]}]`)
  })

  it("refuse what a strict tool's schema cannot promise, by its field, and let other tools take any arguments", () => {
    const tool = {
      name: "f",
      parameters: { type: "object", properties: { a: { type: "object", minProperties: 3 } } },
      field: "tools.3.function.parameters"
    }
    const refused = compileCalls(options("hermes", { tools: [{ ...tool, strict: true }] }))
    if (Result.isSuccess(refused)) throw new Error("not refused")
    assert.match(refused.failure.message, /^tools\.3\.function\.parameters\.properties\.a\.minProperties: /)
    assert.isTrue(Result.isSuccess(compileCalls(options("hermes", { tools: [tool] }))))
  })

  it("mark what the arguments say as content where it is asked for, and nothing else changes", () => {
    const unmarked = (_key: string, value: unknown) => {
      let node = value
      while (typeof node === "object" && node !== null && "kind" in node && node.kind === "content" && "item" in node) node = node.item
      return node
    }
    const lark = { name: "draw", inputGrammar: { syntax: "lark", definition: "start: \"a\" NAME\nNAME: /[a-z]+/" } }
    const number = { type: "integer", multipleOf: 7 }
    const weeks = { name: "weeks", parameters: { type: "object", properties: { days: number }, required: ["days"] }, strict: true }
    for (const { name } of syntaxes) {
      for (const own of [tools, [lark], [weeks]]) {
        const marked = grammarOf(options(name, { tools: own, marksContent: true }))
        const json = JSON.stringify(marked)
        assert.include(json, "\"kind\":\"content\"", name)
        assert.strictEqual(JSON.stringify(marked, unmarked), JSON.stringify(grammarOf(options(name, { tools: own }))), name)
        encodeGrammar(marked)
      }
    }
  })

  it("refuse names that a syntax cannot write", () => {
    for (const [syntax, name] of [["arg-pairs", "a b"], ["qwen-xml", "a>b"], ["gemma4", "+1"], ["mistral-args", "ä"]] as const) {
      const refused = compileCalls(options(syntax, { tools: [{ name, field: "tools.0" }] }))
      if (Result.isSuccess(refused)) throw new Error("not refused")
      assert.match(refused.failure.message, /^tools\.0: a tool named /)
    }
  })

  describe("of tools that together cost too much", () => {
    /** Each of them compiles in a while, all of them never. */
    const costly = (count: number, strict: boolean): ReadonlyArray<Tool> =>
      Array.from({ length: count }, (_, at) => ({
        name: `f${at}`,
        strict,
        field: `tools.${at}.input_schema`,
        parameters: {
          type: "object",
          properties: Object.fromEntries(
            Array.from(
              { length: 40 },
              (_, key) => [`p${key}`, { type: "number", minimum: 1.2345678 * (at + 1) * (key + 1), maximum: 1e7 / 3 }]
            )
          )
        }
      }))

    it("are refused by the one that was too much, where they are strict", () => {
      const refused = compileCalls(options("hermes", { tools: costly(300, true) }))
      if (Result.isSuccess(refused)) return assert.fail("not refused")
      assert.strictEqual(refused.failure.reason, "TooLarge")
      assert.match(refused.failure.path, /^tools\.\d+\.input_schema$/)
      assert.match(
        refused.failure.message,
        /^tools\.\d+\.input_schema: too large to be enforced: what the request asks for takes more than 150 ms/
      )
    })

    it("leave what was promised its time, and are then called with any arguments", () => {
      const strict: Tool = {
        name: "last",
        strict: true,
        field: "t",
        parameters: { type: "object", properties: { a: { const: "promised" } } }
      }
      const format = { _tag: "Choice", choices: ["also promised"], field: "f" } as const
      const grammar = grammarOf(options("hermes", { tools: [...costly(300, false), strict], required: false, format }))
      const text = Buffer.from(encodeGrammar(grammar)).toString()
      for (const kept of ["also promised", "\"promised\"", "f299", "last"]) assert.include(text, kept)
    })

    it("are not looked at where there are thousands", () => {
      const refused = compileCalls(options("hermes", { tools: Array.from({ length: 10_000 }, (_, at) => ({ name: `f${at}` })) }))
      if (Result.isSuccess(refused)) return assert.fail("not refused")
      assert.deepInclude(refused.failure, { reason: "TooLarge", message: "more than 2048 tools cannot be enforced" })
    })
  })
})
