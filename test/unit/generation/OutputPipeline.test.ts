import { assert, describe, it } from "@effect/vitest"
import type { OutputEvent } from "../../../src/domain/OutputEvent.ts"
import { OutputPipeline } from "../../../src/generation/OutputPipeline.ts"

/** Pushes one token per character; "\0" is a token of no text. */
const run = (output: string, options: { readonly startsInReasoning?: boolean; readonly stopStrings?: ReadonlyArray<string> }) => {
  const events: Array<OutputEvent> = []
  const pipeline = new OutputPipeline({
    decoder: { push: (token) => token === 0 ? "" : String.fromCharCode(token), end: () => "" },
    reasoning: options.startsInReasoning === true ? { _tag: "Open", closing: "</think>" } : { _tag: "None" },
    stopStrings: options.stopStrings ?? [],
    emit: (event) => events.push(event)
  })
  let taken = 0
  for (; taken < output.length; taken++) if (pipeline.push(output.charCodeAt(taken))) break
  pipeline.end()
  const joined = (tag: "Text" | "Reasoning") => events.flatMap((event) => event._tag === tag ? [event.text] : []).join("")
  return { text: joined("Text"), reasoning: joined("Reasoning"), stopString: pipeline.stopString, taken, events }
}

describe("OutputPipeline", () => {
  it("emits text token by token, and nothing for a token without text", () => {
    assert.deepStrictEqual(run("a\0b", {}).events, [{ _tag: "Text", text: "a" }, { _tag: "Text", text: "b" }])
  })

  it("ends at a stop string of the answer, not at one in the reasoning", () => {
    const result = run("a.b</think>\n\nc.d", { startsInReasoning: true, stopStrings: ["."] })
    assert.deepInclude(result, { text: "c", reasoning: "a.b", stopString: ".", taken: "a.b</think>\n\nc".length })
  })

  it("hands out what was held back when the output ends", () => {
    assert.deepInclude(run("one EN", { stopStrings: ["END"] }), { text: "one EN", stopString: undefined })
    assert.deepInclude(run("<thin", { stopStrings: ["nope"] }), { text: "<thin", stopString: undefined })
  })

  it("finds a stop string in what the splitter held back until the end", () => {
    assert.deepInclude(run("<thi", { stopStrings: ["hi"] }), { text: "<t", stopString: "hi" })
  })
})
