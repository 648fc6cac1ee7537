import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answerOf, eventually, harness, tokensOf, user } from "./harness.ts"

function* endless(text: string) {
  while (true) yield* tokensOf(text)
}

const script = { answer: () => ({ tokens: endless("again ") }) }

const post = async (url: string, body: object) =>
  JSON.parse(
    await (await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).text()
  )

describe("output that says the same over and over", () => {
  it.live("ends as if it were cut, says why, and frees its slot, in every dialect", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { stopRepetition: 60 } })
      const chat = yield* Effect.promise(() => answerOf(server.post({ messages: user("hi") })))
      assert.strictEqual(chat.choices[0]?.finish_reason, "length")
      assert.strictEqual(chat.choices[0]?.stop_reason, "repetition")
      assert.strictEqual(chat.choices[0]?.message.content, "again ".repeat(10))
      const stream = yield* Effect.promise(async () => (await server.post({ messages: user("hi"), stream: true })).text())
      assert.include(stream, "\"finish_reason\":\"length\",\"stop_reason\":\"repetition\"")
      const response = yield* Effect.promise(() => post(`${server.url}/v1/responses`, { input: "hi" }))
      assert.strictEqual(response.status, "incomplete")
      assert.deepStrictEqual(response.incomplete_details, { reason: "repetition" })
      const message = yield* Effect.promise(() => post(`${server.url}/v1/messages`, { model: "m", max_tokens: 4000, messages: user("hi") }))
      assert.strictEqual(message.stop_reason, "max_tokens")
      const text = yield* Effect.promise(() => post(`${server.url}/v1/completions`, { prompt: "hi", max_tokens: 4000 }))
      assert.strictEqual(text.choices[0].finish_reason, "length")
      yield* Effect.promise(() => eventually(() => server.engine.running() === 0))
    }))

  it.live("goes on where the detector is off or the request ignores ends", () =>
    Effect.gen(function*() {
      const off = yield* harness({ script, settings: { stopRepetition: 0 } })
      const long = yield* Effect.promise(() => answerOf(off.post({ messages: user("hi"), max_tokens: 600 })))
      assert.strictEqual(long.usage.completion_tokens, 600)
      assert.notProperty(long.choices[0], "stop_reason")
      const on = yield* harness({ script, settings: { stopRepetition: 60 } })
      const ignoring = yield* Effect.promise(() => answerOf(on.post({ messages: user("hi"), max_tokens: 600, ignore_eos: true })))
      assert.strictEqual(ignoring.usage.completion_tokens, 600)
    }))
})
