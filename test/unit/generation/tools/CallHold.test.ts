import { assert, describe, it } from "@effect/vitest"
import { CallHold } from "../../../../src/generation/tools/CallHold.ts"
import { syntaxNamed } from "../../../../src/generation/tools/syntaxes.ts"
import { piped } from "./runs.ts"

const tools = [{ name: "f", parameters: { type: "object", properties: { a: { type: "string" } } } }]

const syntaxOf = (name: string) => {
  const syntax = syntaxNamed(name)
  if (syntax === undefined) throw new Error(name)
  return syntax
}

/** What is handed on after each piece, and at the end. */
const handed = (name: string, patience: number, pieces: ReadonlyArray<string>) => {
  let events = ""
  const hold = new CallHold({
    text: (text) => events += `text(${text})`,
    start: (own, id) => events += `start(${own}${id === undefined ? "" : ` ${id}`})`,
    argument: (text) => events += `argument(${text})`,
    end: (whole) => events += `end(${whole})`
  }, patience)
  const parser = syntaxOf(name).parser(hold, tools)
  const steps = pieces.map((piece) => {
    parser.push(piece)
    const step = events
    events = ""
    return step
  })
  parser.end()
  hold.close()
  return [...steps, events]
}

describe("calls that no grammar promises", () => {
  it("are handed on when they are whole", () => {
    assert.deepStrictEqual(
      handed("hermes", 100, ["a <tool_call>{\"name\": \"f\", \"arguments\": {\"a", "\": 1", "}}", "</tool_call>"]),
      ["text(a )", "", "start(f)argument({\"a)argument(\": 1)argument(})end(true)", "", ""]
    )
  })

  it("go on as they come once they are long, and then stay calls whatever follows", () => {
    assert.deepStrictEqual(
      handed("hermes", 50, ["<tool_call>{\"name\": \"f\", \"arguments\": {\"a", "\": \"0123456789", "5", "\" x", "</tool_call>", "b"]),
      ["", "start(f)argument({\"a)argument(\": \"0123456789)", "argument(5)", "argument(\" x)", "end(false)", "text(b)", ""]
    )
  })

  it("are text where they go wrong or break off before", () => {
    const broken = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": oops</tool_call>"
    const call = "<tool_call>{\"name\": \"f\"}</tool_call>"
    const late = "<tool_call>{\"name\": \"f\", \"arguments\": {}\n</tool_call>"
    const options = { syntax: syntaxOf("hermes"), patience: 100 }
    for (const raw of [`x ${broken} y`, `x ${late}`, late + broken, `${broken}\n${late}`]) {
      for (const pieces of [[raw], [...raw]]) {
        assert.deepStrictEqual(piped(pieces, options), { text: raw, reasoning: "", calls: [] })
        assert.deepStrictEqual(piped([...pieces, call], options), { text: raw, reasoning: "", calls: [{ name: "f", text: "{}" }] })
      }
    }
    // Markup of messages is none of calls.
    const message = "<|channel|>commentary to=f<|message|>{\"a\": oops"
    const text = `${message}<|call|><|start|>assistant<|channel|>final<|message|>x`
    assert.deepStrictEqual(piped([text], { ...options, syntax: syntaxOf("harmony"), tools }), {
      text: `${message}\nx`,
      reasoning: "",
      calls: []
    })
  })

  it("stand or fall together in a list", () => {
    const [first, second] = ["{\"name\": \"f\", \"arguments\": {}}", "{\"name\": \"f\", \"id\": \"i\", \"arguments\": {\"a\": 1}}"]
    assert.deepStrictEqual(handed("mistral-array", 100, [`[TOOL_CALLS][${first}`, `, ${second}`, "]", "x"]), [
      "",
      "",
      "start(f)argument({})end(true)start(f i)argument({\"a\": 1})end(true)",
      "text(x)",
      ""
    ])
    assert.deepStrictEqual(handed("mistral-array", 100, [`[TOOL_CALLS][${first}`, "; "]), ["", `text([TOOL_CALLS][${first})text(; )`, ""])
    assert.deepStrictEqual(handed("mistral-array", 20, [`[TOOL_CALLS][${first}`, "; "]), ["start(f)argument({})end(true)", "text(; )", ""])
  })

  it("of bare syntaxes wait for the end of the output", () => {
    const call = "{\"name\": \"f\", \"parameters\": {}}"
    assert.deepStrictEqual(handed("llama3-json", 100, [call, "\n"]), ["", "", "start(f)argument({})end(true)text(\n)"])
    assert.deepStrictEqual(handed("llama3-json", 100, [call, "; "]), ["", "", `text(${call})text(; )`])
    assert.deepStrictEqual(handed("llama3-pythonic", 100, ["[f()]", " done"]), ["", "text([f()])text( done)", ""])
    assert.deepStrictEqual(handed("llama3-pythonic", 100, ["[f(), f(a=\"b\")]"]), [
      "",
      "start(f)argument({})end(true)start(f)argument({\"a\": \"b\"})end(true)"
    ])
  })
})
