import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { OutputCollector } from "../../../../src/domain/Output.ts"
import { OutputPipeline } from "../../../../src/generation/OutputPipeline.ts"
import { hermes } from "../../../../src/generation/tools/Hermes.ts"

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
