import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { greedyDefaults, type SamplingDefaults } from "../../../src/domain/Sampling.ts"
import { harness } from "./harness.ts"

const ask = [{ role: "user", content: "hi" }]

const requests: ReadonlyArray<readonly [path: string, body: Record<string, unknown>]> = [
  ["/v1/chat/completions", { messages: ask, max_tokens: 1 }],
  ["/v1/completions", { prompt: "hi", max_tokens: 1 }],
  ["/v1/responses", { input: "hi", max_output_tokens: 16 }],
  ["/v1/messages", { model: "demo/model", messages: ask, max_tokens: 1 }]
]

const model: SamplingDefaults = {
  temperature: 0.6,
  topK: 20,
  topP: 0.95,
  minP: 0.05,
  repetitionPenalty: 1.1,
  frequencyPenalty: 0.2,
  presencePenalty: 0.3,
  repetitionWindow: 64
}

const script = { answer: () => ({ tokens: [104, 105] }) }

describe.each(
  [
    ["greedy", greedyDefaults, {}],
    ["the model's", model, { served: { samplingDefaults: model } }]
  ] as const
)("where a request is silent, %s sampling", (_, defaults, options) => {
  it.live("holds in every dialect, and what a request says comes first", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, ...options })
      const post = (path: string, body: unknown) =>
        Effect.promise(() =>
          fetch(server.url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
        )
      for (const [path, body] of requests) {
        const answer = yield* post(path, body)
        assert.strictEqual(answer.status, 200, path)
        const whole = yield* Effect.promise(() => answer.text())
        const silent = server.engine.requests.at(-1)
        assert.deepInclude(silent, defaults, path)
        if (path === "/v1/responses") assert.deepInclude(JSON.parse(whole), { temperature: defaults.temperature, top_p: defaults.topP })
        assert.strictEqual((yield* post(path, { ...body, temperature: 0, top_k: 0 })).status, 200, path)
        assert.deepInclude(server.engine.requests.at(-1), { ...defaults, temperature: 0, topK: 0 }, path)
      }
    }))

  it.live("is what the health route and the props show", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, ...options })
      const get = (path: string) => Effect.promise(async () => (await fetch(server.url + path)).text())
      assert.deepEqual(JSON.parse(yield* get("/health")).sampling_defaults, {
        temperature: defaults.temperature,
        top_k: defaults.topK,
        top_p: defaults.topP,
        min_p: defaults.minP,
        repetition_penalty: defaults.repetitionPenalty,
        frequency_penalty: defaults.frequencyPenalty,
        presence_penalty: defaults.presencePenalty,
        rep_window: defaults.repetitionWindow
      })
      assert.deepInclude(JSON.parse(yield* get("/props")).default_generation_settings.params, {
        temperature: defaults.temperature,
        top_k: defaults.topK,
        top_p: defaults.topP,
        min_p: defaults.minP,
        repeat_penalty: defaults.repetitionPenalty,
        repeat_last_n: defaults.repetitionWindow
      })
    }))
})
