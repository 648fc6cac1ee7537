import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Script } from "../../../src/engine/EngineScripted.ts"
import { answerOf, errorOf, events, type Harness, harness, tokensOf, user } from "./harness.ts"

const says = (text: string): Script => ({
  answer: () => ({
    tokens: tokensOf(text),
    logprobs: (token, index) => ({ logprob: -index - 1, top: [{ token, logprob: -index - 1 }, { token: 63, logprob: -20 }] })
  })
})

const messages = user("hi")

const chat = (server: Harness, body: object) => Effect.promise(() => answerOf(server.post({ messages, ...body })))

describe("log probabilities on /v1/chat/completions", () => {
  const scored = (text: string, logprob: number) => ({ token: text, logprob, bytes: [...Buffer.from(text)] })

  it.live("come for the answer's tokens, not for reasoning, tags or stop strings", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("<think>no</think>\n\nabSTOPx") })
      const body = yield* chat(server, { logprobs: true, top_logprobs: 2, stop: "STOP" })
      const first = "<think>no</think>\n\n".length + 1
      assert.deepStrictEqual(body.choices[0]?.logprobs, {
        content: [
          { ...scored("a", -first), top_logprobs: [scored("a", -first), scored("?", -20)] },
          { ...scored("b", -first - 1), top_logprobs: [scored("b", -first - 1), scored("?", -20)] }
        ],
        refusal: null
      })
      const streamed = yield* Effect.promise(async () =>
        events(await (await server.post({ messages, logprobs: true, top_logprobs: 2, stop: "STOP", stream: true })).text())
      )
      const chunks = streamed.flatMap((event) => {
        const text = JSON.stringify(event)
        return text.includes("\"logprobs\"") ? [text] : []
      })
      assert.deepStrictEqual(
        chunks.map((chunk): unknown => JSON.parse(chunk).choices[0].logprobs.content),
        body.choices[0]?.logprobs?.content?.map((token) => [token])
      )
    }))

  it.live("come without alternatives where none were asked for, and not at all where they were not", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("a") })
      assert.deepStrictEqual((yield* chat(server, { logprobs: true })).choices[0]?.logprobs?.content, [
        { ...scored("a", -1), top_logprobs: [] }
      ])
      assert.isNull((yield* chat(server, {})).choices[0]?.logprobs)
      assert.deepStrictEqual(server.engine.requests.map(({ topLogprobs }) => topLogprobs), [0, undefined])
    }))
})

describe("vLLM's fields on /v1/chat/completions", () => {
  it.live("act", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: [...tokensOf("ab"), 3, ...tokensOf("cd")] }) } })
      const content = (body: object) => Effect.map(chat(server, body), ({ choices: [choice] }) => choice?.message.content)
      assert.strictEqual(yield* content({}), "ab")
      assert.strictEqual(yield* content({ ignore_eos: true }), "ab\u0003cd")
      assert.strictEqual(yield* content({ ignore_eos: true, stop_token_ids: [100] }), "ab\u0003c")
      assert.strictEqual(yield* content({ min_tokens: 5 }), "ab\u0003cd")
      assert.strictEqual(yield* content({ stop: "b", include_stop_str_in_output: true }), "ab")
      const body = yield* chat(server, { return_token_ids: true, stop_token_ids: [98] })
      assert.deepStrictEqual(body.prompt_token_ids, tokensOf("user:hi|"))
      assert.deepInclude(body.choices[0], { token_ids: [97, 98], stop_reason: 98, finish_reason: "stop" })
      const last = yield* Effect.promise(async () =>
        events(await (await server.post({ messages, return_token_ids: true, stream: true })).text()).at(-2)
      )
      assert.deepInclude(last, { prompt_token_ids: tokensOf("user:hi|") })
    }))

  it.live("are refused by name where they cannot be honoured", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("a") })
      const cases: ReadonlyArray<readonly [object, string]> = [
        [{ echo: true }, "echo"],
        [{ add_special_tokens: true }, "add_special_tokens"],
        [{ truncate_prompt_tokens: 1 }, "truncate_prompt_tokens"],
        [{ structured_outputs: { regex: "a+", choice: ["a"] } }, "structured_outputs.choice"],
        [{ top_logprobs: 2 }, "top_logprobs"],
        [{ logprobs: true, top_logprobs: 21 }, "top_logprobs"],
        [{ min_tokens: -1 }, "min_tokens"],
        [{ stop_token_ids: [0.5] }, "stop_token_ids.0"],
        [{ continue_final_message: true }, "continue_final_message"],
        [{ continue_final_message: true, add_generation_prompt: true }, "continue_final_message"]
      ]
      for (const [body, field] of cases) {
        const response = yield* Effect.promise(() => server.post({ messages, ...body }))
        assert.strictEqual(response.status, 400, field)
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, field)
      }
      assert.strictEqual(server.engine.requests.length, 0)
      const response = yield* Effect.promise(() => server.post({ messages, priority: 1, echo: false, add_special_tokens: false }))
      assert.strictEqual(response.headers.get("x-mashbox-ignored"), "priority")
    }))
})

describe("vLLM's usage of every chunk", () => {
  const stream_options = { include_usage: true, continuous_usage_stats: true }

  interface Chunk {
    readonly choices: ReadonlyArray<{ readonly index: number; readonly finish_reason: string | null }>
    readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly total_tokens: number }
  }

  const chunksOf = (body: string): ReadonlyArray<Chunk> =>
    body.split("\n\n").filter((frame) => frame.startsWith("data: {")).map((frame) => JSON.parse(frame.slice(6)))

  const post = (server: Harness, path: string, body: object) =>
    Effect.promise(async () =>
      chunksOf(
        await (await fetch(`${server.url}${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ ...body, stream: true })
        })).text()
      )
    )

  it.live("counts the tokens of a choice so far, those without text too", () =>
    Effect.gen(function*() {
      const texts = ["<think>no</think>\n\nabcde", "xy"]
      const server = yield* harness({
        script: { answer: (_request, index) => ({ tokens: tokensOf(texts[index % 2] ?? ""), interval: "2 millis" }) }
      })
      for (
        const [path, body, lengths] of [
          ["/v1/chat/completions", { messages, n: 2, stream_options }, [24, 2]],
          ["/v1/completions", { prompt: "hi", n: 2, stream_options }, [24, 2]]
        ] as const
      ) {
        const chunks = yield* post(server, path, body)
        const prompt = path === "/v1/completions" ? 2 : "user:hi|".length
        for (const { usage } of chunks) {
          assert.strictEqual(usage?.prompt_tokens, prompt)
          assert.strictEqual(usage?.total_tokens, prompt + (usage?.completion_tokens ?? 0))
        }
        const total = chunks.at(-1)
        assert.deepStrictEqual([total?.choices, total?.usage?.completion_tokens], [[], 26])
        for (const index of [0, 1]) {
          const own = chunks.filter(({ choices: [choice] }) => choice?.index === index)
          const counts = own.map(({ usage }) => usage?.completion_tokens ?? -1)
          assert.deepStrictEqual(counts, counts.toSorted((a, b) => a - b), path)
          assert.strictEqual(counts.at(-1), lengths[index])
          assert.isAbove(new Set(counts).size, index === 0 ? 5 : 1)
        }
      }
    }))

  it.live("is only with the usage at the end, and named where it does nothing", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ab") })
      const body = JSON.stringify({ prompt: "hi", stream: true, stream_options: { continuous_usage_stats: true, other: 1 } })
      const response = yield* Effect.promise(() =>
        fetch(`${server.url}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" }, body })
      )
      assert.strictEqual(
        response.headers.get("x-mashbox-ignored"),
        "stream_options.continuous_usage_stats, stream_options.other"
      )
      assert.isTrue(chunksOf(yield* Effect.promise(() => response.text())).every(({ usage }) => usage === undefined))
      const chunks = yield* post(server, "/v1/chat/completions", { messages, stream_options: { include_usage: true } })
      assert.deepStrictEqual(chunks.map(({ usage }) => usage !== undefined), chunks.map((_, index) => index === chunks.length - 1))
    }))
})
