import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Completion } from "../../../schema/openai/Completions.ts"
import type { Script } from "../../../src/engine/EngineScripted.ts"
import { readCompletionsStream } from "../../support/completionsStream.ts"
import { errorOf, type Harness, harness, textOf, tokensOf } from "./harness.ts"

const says = (text: string): Script => ({ answer: () => ({ tokens: tokensOf(text) }) })

const post = (server: Harness, body: object) =>
  fetch(`${server.url}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })

const read = Schema.decodeUnknownPromise(Completion)

const complete = (server: Harness, body: object) =>
  Effect.promise(async () => {
    const response = await post(server, body)
    assert.strictEqual(response.status, 200, await response.clone().text())
    return read(await response.json())
  })

const stream = (server: Harness, body: object) =>
  Effect.promise(async () => {
    const response = await post(server, { stream: true, ...body })
    assert.strictEqual(response.status, 200)
    return readCompletionsStream(await response.text())
  })

const refusal = (server: Harness, body: object) =>
  Effect.promise(async () => {
    const response = await post(server, body)
    assert.strictEqual(response.status, 400)
    return errorOf(response)
  })

/** Says the prompt in capitals; the second choice of a prompt ends in "2", and so on. */
const shouts: Script = {
  answer: ({ seed, tokens }) => ({ tokens: tokensOf(textOf(tokens).toUpperCase() + (seed === 5 ? "" : seed - 4)) })
}

describe("POST /v1/completions", () => {
  it.live("continues a text as it is, reasoning tags and tool calls too", () =>
    Effect.gen(function*() {
      const text = "<think>x</think> <tool_call>{}</tool_call>"
      const server = yield* harness({ script: says(text) })
      const body = yield* complete(server, { prompt: "Once", max_tokens: 100, seed: 7 })
      assert.deepStrictEqual(body.choices, [{ index: 0, text, logprobs: null, finish_reason: "stop" }])
      assert.match(body.id, /^cmpl-[0-9a-f]{32}$/)
      assert.strictEqual(body.system_fingerprint, "seed-7")
      assert.deepInclude(body.usage, { prompt_tokens: 4, completion_tokens: text.length, total_tokens: 4 + text.length })
      assert.strictEqual(textOf(server.engine.requests[0]?.tokens ?? []), "Once")
      const streamed = yield* stream(server, { prompt: "Once", stream_options: { include_usage: true } })
      assert.deepInclude(streamed.choices[0], { text, finish: "stop" })
      assert.deepInclude(streamed.usage, { prompt_tokens: 4, completion_tokens: text.length })
      assert.isUndefined((yield* stream(server, { prompt: "Once" })).usage)
    }))

  it.live("takes token ids, and lists of texts or of token ids, in order", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: shouts })
      const texts = (body: object) => Effect.map(complete(server, { seed: 5, ...body }), ({ choices }) => choices.map(({ text }) => text))
      assert.deepStrictEqual(yield* texts({ prompt: tokensOf("abc") }), ["ABC"])
      assert.deepStrictEqual(yield* texts({ prompt: ["a", "b", "c"] }), ["A", "B", "C"])
      assert.deepStrictEqual(yield* texts({ prompt: [tokensOf("x"), tokensOf("yz")] }), ["X", "YZ"])
      assert.deepStrictEqual(yield* texts({ prompt: ["a", "b"], n: 2 }), ["A", "A2", "B", "B2"])
      assert.deepStrictEqual(yield* texts({ prompt: ["a", "bc"], echo: true, n: 2 }), ["aA", "aA2", "bcBC", "bcBC2"])
      assert.deepStrictEqual(yield* texts({ prompt: [tokensOf("a")], echo: true }), ["aA"])
      const streamed = yield* stream(server, { prompt: ["a", "bc"], n: 2, seed: 5, echo: true, stream_options: { include_usage: true } })
      assert.deepStrictEqual(streamed.choices.map(({ text }) => text), ["aA", "aA2", "bcBC", "bcBC2"])
      assert.deepInclude(streamed.usage, { prompt_tokens: 3, completion_tokens: 8 })
    }))

  it.live("takes lists of any length, alone and among others", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...shouts, model: { contextLength: 200_000, slots: 8 } }, limits: { bodyBytes: 1e6 } })
      const long = "the sea ".repeat(2_500)
      const prompts = (body: object) =>
        Effect.map(complete(server, { max_tokens: 1, ...body }), ({ usage }) => {
          const seen = server.engine.requests.slice().map(({ tokens }) => Buffer.from(tokens).toString())
          return { seen, tokens: usage?.prompt_tokens }
        })
      assert.deepStrictEqual(yield* prompts({ prompt: tokensOf(long) }), { seen: [long], tokens: long.length })
      assert.deepStrictEqual(
        yield* prompts({ prompt: [tokensOf("a"), tokensOf(long), tokensOf("b")] }),
        { seen: [long, "a", long, "b"], tokens: long.length + 2 }
      )
      const echoed = yield* complete(server, { prompt: tokensOf(long), echo: true, max_tokens: 1, seed: 5 })
      assert.strictEqual(echoed.choices[0]?.text, `${long}T`)
    }))

  it.live("gives the best of several by their mean log probability, and counts all", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: ({ seed }) => ({
            tokens: tokensOf(String(seed).repeat(seed)),
            logprobs: () => ({ logprob: seed === 3 ? -0.5 : -seed, top: [] })
          })
        }
      })
      const body = yield* complete(server, { prompt: "x", n: 2, best_of: 4, seed: 1 })
      assert.deepStrictEqual(body.choices.map(({ index, logprobs, text }) => [index, text, logprobs]), [[0, "333", null], [1, "1", null]])
      assert.strictEqual(body.usage?.completion_tokens, 1 + 2 + 3 + 4)
    }))

  it.live("words log probabilities as the API of old did", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: () => ({
            tokens: tokensOf("abS"),
            logprobs: (token, index) => ({ logprob: -index - 1, top: [{ token: 120, logprob: -0.25 }, { token, logprob: -index - 1 }] })
          })
        }
      })
      const expected = {
        tokens: ["a", "b"],
        token_logprobs: [-1, -2],
        top_logprobs: [{ x: -0.25, a: -1 }, { x: -0.25, b: -2 }],
        text_offset: [0, 1]
      }
      const whole = yield* complete(server, { prompt: "p", logprobs: 2, stop: "S" })
      assert.deepStrictEqual(whole.choices[0]?.logprobs, expected)
      const streamed = yield* stream(server, { prompt: "p", logprobs: 2, stop: "S" })
      assert.deepStrictEqual(streamed.choices[0]?.logprobs.map(({ text_offset }) => text_offset), [[0], [1]])
      assert.deepStrictEqual(streamed.choices[0]?.logprobs.flatMap(({ top_logprobs }) => top_logprobs ?? []), expected.top_logprobs)
      const alone = yield* complete(server, { prompt: "p", logprobs: 0, stop: "S" })
      assert.deepStrictEqual(alone.choices[0]?.logprobs, { ...expected, top_logprobs: null })
    }))

  it.live("acts on vLLM's fields about tokens", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: [...tokensOf("ab"), 3, ...tokensOf("cd")] }) } })
      const choice = (body: object) => Effect.map(complete(server, { prompt: "p", ...body }), ({ choices: [own] }) => own)
      assert.deepInclude(yield* choice({}), { text: "ab", finish_reason: "stop" })
      assert.strictEqual((yield* choice({ ignore_eos: true }))?.text, "ab\u0003cd")
      assert.strictEqual((yield* choice({ min_tokens: 3 }))?.text, "ab\u0003cd")
      assert.deepInclude(yield* choice({ stop_token_ids: [98] }), { text: "a", finish_reason: "stop", stop_reason: 98 })
      assert.deepInclude(yield* choice({ stop: ["b"] }), { text: "a", stop_reason: "b" })
      assert.deepInclude(yield* choice({ stop: ["b"], include_stop_str_in_output: true }), { text: "ab", stop_reason: "b" })
      assert.deepInclude(yield* choice({ stop: ["a"], min_tokens: 1 }), { text: "ab" })
      assert.deepInclude(yield* choice({ return_token_ids: true }), { token_ids: [97, 98, 3], prompt_token_ids: [112] })
      const { choices: [streamed] } = yield* stream(server, { prompt: "p", return_token_ids: true })
      assert.deepInclude(streamed?.last, { token_ids: [97, 98, 3], prompt_token_ids: [112] })
    }))

  it.live("names the field that it cannot act on", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...says("x"), model: { contextLength: 4096, slots: 8 } }, limits: { bodyBytes: 1e6 } })
      const prompt = "p"
      const cases: ReadonlyArray<readonly [string, object, string]> = [
        ["no prompt", {}, "prompt"],
        ["an empty list", { prompt: [] }, "prompt"],
        ["an empty text", { prompt: "" }, "prompt"],
        ["a mixed list", { prompt: ["a", 1] }, "prompt.0"],
        ["a token that is none", { prompt: [1 << 20] }, "prompt"],
        ["a negative token", { prompt: [-1] }, "prompt.0"],
        ["a long list with a token that is none", { prompt: [...Array.from({ length: 20_000 }, () => 97), 1.5] }, "prompt.20000"],
        ["a long list among others, with a text in it", {
          prompt: [[97], [...Array.from({ length: 20_000 }, () => 97), "a"]]
        }, "prompt.1.20000"],
        ["a long list with an unknown token", {
          prompt: [...Array.from({ length: 4000 }, () => 97), 1 << 20]
        }, "prompt"],
        ["too many prompts", { prompt: Array.from({ length: 33 }, () => "a") }, "prompt"],
        ["a suffix", { prompt, suffix: "end" }, "suffix"],
        ["a suffix for token ids", { prompt: [1], suffix: "end" }, "suffix"],
        ["fewer to choose from than chosen", { prompt, n: 2, best_of: 1 }, "best_of"],
        ["the best of several in a stream", { prompt, best_of: 2, stream: true }, "best_of"],
        ["more choices than can wait", { prompt, n: 65 }, "n"],
        ["more of one prompt than the slots", { prompt, n: 9 }, "n"],
        ["more to choose from than the slots", { prompt, best_of: 9 }, "best_of"],
        ["log probabilities of an echo", { prompt, echo: true, logprobs: 0 }, "logprobs"],
        ["too many alternatives", { prompt, logprobs: 21 }, "logprobs"],
        ["log probabilities as on Chat", { prompt, logprobs: true }, "logprobs"],
        ["a stop token that is none", { prompt, stop_token_ids: [1, 1 << 20] }, "stop_token_ids.1"],
        ["truncation", { prompt, truncate_prompt_tokens: 5 }, "truncate_prompt_tokens"],
        ["log probabilities of the prompt", { prompt, prompt_logprobs: 1 }, "prompt_logprobs"],
        ["an expression that no grammar says", { prompt, guided_regex: "(a)\\1" }, "guided_regex"],
        ["a prompt that is too long", { prompt: "a".repeat(5000) }, "prompt"]
      ]
      for (const [name, body, field] of cases) assert.strictEqual((yield* refusal(server, body)).param, field, name)
      assert.strictEqual(server.engine.requests.length, 0)
      const response = yield* Effect.promise(() => post(server, { prompt, priority: 3, suffix: null, store: true }))
      assert.strictEqual(response.headers.get("x-mashbox-ignored"), "priority, store")
    }))

  it.live("frees every slot when one choice fails", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: ({ seed }) => ({
            tokens: tokensOf("abc"),
            ...(seed === 2 ? { fault: { _tag: "Failed", afterTokens: 1, code: "out_of_memory", message: "m" } } : {})
          })
        }
      })
      const response = yield* Effect.promise(() => post(server, { prompt: "p", n: 2, seed: 1 }))
      assert.strictEqual(response.status, 500)
      assert.strictEqual(yield* server.admission.running, 0)
    }))
})

const captures = join(import.meta.dirname, "../../fixtures/captures")
const readCapture = Schema.decodeUnknownSync(
  Schema.fromJsonString(
    Schema.Struct({
      request: Schema.Struct({ headers: Schema.Record(Schema.String, Schema.String), body: Schema.Record(Schema.String, Schema.Unknown) })
    })
  )
)

describe("requests that clients sent to /v1/completions", () => {
  const files = ["sdk-openai", "sdk-vercel-ai"].flatMap((client) =>
    readdirSync(join(captures, client)).filter((name) => name.endsWith("-completions.json")).map((name) => join(client, name))
  )

  it("are there", () => assert.isAtLeast(files.length, 6))

  for (const file of files) {
    it.live(file, () =>
      Effect.gen(function*() {
        const server = yield* harness({ script: says("Hello.\nuser: more"), settings: { aliases: ["mash-test"] } })
        const { request: { body } } = readCapture(readFileSync(join(captures, file), "utf8"))
        const own = { ...body, model: "demo/model" }
        const expected = body["stop"] === undefined ? "Hello" : "Hello."
        if (body["stream"] === true) assert.strictEqual((yield* stream(server, own)).choices[0]?.text, expected)
        else assert.strictEqual((yield* complete(server, own)).choices[0]?.text, expected)
      }))
  }

  it("the recorded answers have the same grammar", () => {
    const golden = readFileSync(join(captures, "golden-responses/completions-text.sse"), "utf8")
    assert.strictEqual(readCompletionsStream(golden).choices[0]?.text, "Hello from mashbox.")
  })
})
