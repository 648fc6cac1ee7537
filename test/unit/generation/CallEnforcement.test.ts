import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Overloaded } from "../../../src/domain/Errors.ts"
import type { Tool } from "../../../src/domain/Tool.ts"
import { CallEnforcement, type CallRequest } from "../../../src/generation/CallEnforcement.ts"
import { syntaxes, syntaxNamed } from "../../../src/generation/tools/syntaxes.ts"
import { GrammarError } from "../../../src/grammar/GrammarError.ts"
import type { GrammarThread } from "../../../src/grammar/GrammarThread.ts"
import { noReasoning } from "../../../src/prompt/Reasoning.ts"

const enforcement = (
  name: string,
  compile: GrammarThread["compile"] = () => Effect.die(new Error("small grammars need no thread")),
  greedySyntax = false
) => {
  const syntax = syntaxNamed(name)
  if (syntax === undefined) throw new Error(`no syntax ${name}`)
  return new CallEnforcement({
    syntax: { syntax, sample: "" },
    format: undefined,
    tokenizer: {
      encode: () => Effect.succeed(new Int32Array()),
      decoder: () => ({ push: () => "", end: () => "" }),
      tokenBytes: () => new Uint8Array(),
      endTokens: new Int32Array(),
      bos: undefined,
      eos: undefined,
      specialTexts: ["<tool_call>", "<think>", "</think>"],
      tokenId: () => 5,
      size: 10
    },
    thread: { compile },
    greedySyntax
  })
}

const tool: Tool = { name: "f", parameters: { type: "object", properties: { a: { type: "string" } } } }
const impossible: Tool = { name: "g", parameters: { type: "object", minProperties: 3 }, field: "tools.1.parameters" }

const request = (changes: Partial<CallRequest> = {}): CallRequest => ({
  tools: [tool],
  choice: undefined,
  parallel: true,
  reasoning: noReasoning,
  ...changes
})

const bytes = (own: CallEnforcement, changes: Partial<CallRequest>) => Effect.runSync(own.grammar(request(changes)))

describe("what holds calls to their form", () => {
  it("is a grammar wherever a call may begin, and for what was promised", () => {
    for (const { name } of syntaxes) {
      const own = enforcement(name)
      assert.strictEqual(bytes(own, {}) !== undefined, name !== "harmony", name)
      // In the middle of an answer no calls begin that stand at its beginning.
      assert.strictEqual(bytes(own, { continues: true }) !== undefined, name !== "harmony" && !name.startsWith("llama3"), name)
      assert.isDefined(bytes(own, { tools: [{ ...tool, strict: true }] }), name)
      assert.isDefined(bytes(own, { choice: { required: true, field: "tool_choice" } }), name)
      assert.isUndefined(bytes(own, { tools: [] }), name)
    }
  })

  it("is made once for the same tools, choice and place", () => {
    const own = enforcement("hermes")
    const first = bytes(own, {})
    assert.strictEqual(bytes(own, { tools: [{ ...tool }] }), first)
    assert.notDeepEqual(bytes(own, { parallel: false }), first)
    assert.notDeepEqual(
      bytes(own, { choice: { required: false, names: ["f"], field: "x" }, tools: [tool, { name: "h" }] }),
      bytes(own, {
        tools: [tool, { name: "h" }]
      })
    )
    assert.notDeepEqual(bytes(own, { reasoning: { _tag: "Open", closing: "</think>" } }), first)
    for (let index = 0; index < 40; index++) bytes(own, { tools: [{ ...tool, name: `f${index}` }] })
    assert.notStrictEqual(bytes(own, {}), first)
    assert.deepStrictEqual(bytes(own, {}), first)
  })

  it("marks content for a syntax that is drawn greedily, but not where the answer has a format", () => {
    const format = { _tag: "JsonObject", field: "response_format" } as const
    for (const { name } of syntaxes) {
      const choice = { required: true, field: "tool_choice" }
      assert.notDeepEqual(bytes(enforcement(name, undefined, true), { choice }), bytes(enforcement(name), { choice }), name)
      assert.deepStrictEqual(
        bytes(enforcement(name, undefined, true), { choice, format }),
        bytes(enforcement(name), { choice, format }),
        name
      )
    }
  })

  it("lets what cannot be held go free, and refuses it where it was promised, by its field", () => {
    const own = enforcement("arg-pairs")
    const unnameable: Tool = { name: "a b" }
    assert.isUndefined(bytes(own, { tools: [unnameable] }))
    const forced = Effect.runSync(
      Effect.result(own.grammar(request({ tools: [unnameable], choice: { required: true, field: "tool_choice" } })))
    )
    if (Result.isSuccess(forced)) throw new Error("not refused")
    assert.deepInclude(forced.failure, { _tag: "UnsupportedFeature", field: "tools.a b" })
    assert.isDefined(bytes(own, { tools: [impossible] }))
    const strict = Effect.runSync(Effect.result(own.grammar(request({ tools: [tool, { ...impossible, strict: true }] }))))
    if (Result.isSuccess(strict)) throw new Error("not refused")
    assert.deepInclude(strict.failure, { _tag: "UnsupportedFeature", field: "tools.1.parameters.minProperties" })
  })

  it("asks the thread for what is heavy, once for the same tools, and nothing for what is too large", () => {
    const works: Array<string> = []
    const own = enforcement("hermes", (work, tenant) => {
      works.push(`${tenant} ${work}`)
      return Effect.succeed(Uint8Array.of(1, 2, 3))
    })
    const heavy: Tool = { name: "h", parameters: { type: "object", properties: { a: { type: "string", pattern: "a+" } } } }
    for (let turn = 0; turn < 3; turn++) assert.deepStrictEqual(bytes(own, { tools: [tool, heavy] }), Uint8Array.of(1, 2, 3))
    assert.strictEqual(works.length, 1)
    assert.match(works[0] ?? "", /^local .*"pattern":"a\+"/)

    const huge: Tool = { name: "huge", parameters: { const: "x".repeat(3_000_000) }, field: "tools.0.parameters" }
    const refused = Effect.runSync(Effect.result(own.grammar(request({ tools: [{ ...huge, strict: true }] }))))
    if (Result.isSuccess(refused)) throw new Error("not refused")
    assert.deepInclude(refused.failure, { _tag: "InvalidRequest", field: "tools.0.parameters" })
    const format = { _tag: "JsonSchema", schema: huge.parameters, field: "text.format.schema" } as const
    const unanswerable = Effect.runSync(Effect.result(own.grammar(request({ tools: [], format }))))
    if (Result.isSuccess(unanswerable)) throw new Error("not refused")
    assert.deepInclude(unanswerable.failure, { _tag: "InvalidRequest", field: "text.format.schema" })
    assert.strictEqual(works.length, 1)
    // A tool of which nothing was promised is called with any arguments.
    bytes(own, { tools: [huge] })
    assert.notInclude(works.join(""), "xxx")
  })

  it("says so where too many wait for the thread, and asks again the next time", () => {
    let asked = 0
    const own = enforcement("hermes", () => {
      asked++
      return Effect.fail(new Overloaded({ scope: "tenant", waitingFor: "grammar", retryAfter: 2 }))
    })
    const heavy: Tool = { name: "h", parameters: { type: "object", properties: { a: { type: "string", pattern: "a+" } } } }
    for (let turn = 0; turn < 2; turn++) {
      const refused = Effect.runSync(Effect.result(own.grammar(request({ tools: [heavy] }))))
      if (Result.isSuccess(refused)) throw new Error("not refused")
      assert.deepInclude(refused.failure, { _tag: "Overloaded", waitingFor: "grammar" })
    }
    assert.strictEqual(asked, 2)
  })

  it("remembers too that output goes free, and refuses what the thread refuses, by its field", () => {
    let asked = 0
    const own = enforcement("hermes", () => {
      asked++
      return Effect.fail(new GrammarError({ reason: "TooLarge", message: "the thread ended", path: "" }))
    })
    const heavy: Tool = { name: "h", parameters: { type: "object", properties: { a: { type: "string", pattern: "a+" } } } }
    for (let turn = 0; turn < 3; turn++) assert.isUndefined(bytes(own, { tools: [heavy] }))
    assert.strictEqual(asked, 1)
    const choice = { required: true, field: "tool_choice" }
    const refused = Effect.runSync(Effect.result(own.grammar(request({ tools: [heavy], choice }))))
    if (Result.isSuccess(refused)) throw new Error("not refused")
    assert.deepInclude(refused.failure, { _tag: "InvalidRequest", field: "tool_choice", message: "tool_choice: the thread ended" })
  })

  it.live("is warmed up with tools in every syntax, which changes no grammar and needs no thread", () =>
    Effect.gen(function*() {
      for (const { name } of syntaxes) {
        const own = enforcement(name)
        yield* own.warmUp
        const choice = { required: true, field: "tool_choice" }
        assert.deepStrictEqual(bytes(own, { choice }), bytes(enforcement(name), { choice }), name)
      }
    }))
})
