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
        [{ structured_outputs: {} }, "structured_outputs"],
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
