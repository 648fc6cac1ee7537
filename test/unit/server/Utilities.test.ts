import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { errorOf, type Harness, harness, tokensOf, user } from "./harness.ts"

const script = { answer: () => ({ tokens: [] }) }

const post = (server: Harness, path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
  Effect.promise(() =>
    fetch(server.url + path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) })
  )

const json = (server: Harness, path: string, body: object) =>
  Effect.flatMap(post(server, path, body), (response) => {
    assert.strictEqual(response.status, 200)
    return Effect.promise((): Promise<unknown> => response.json())
  })

describe("POST /tokenize", () => {
  it.live("answers vLLM's and llama-server's words for a text, also while the model loads", () =>
    Effect.gen(function*() {
      for (const load of ["ready", "never"] as const) {
        const server = yield* harness({ script: { ...script, load, model: { contextLength: 4096 } } })
        const plain = { count: 2, max_model_len: 4096, tokens: tokensOf("hé"), token_strs: null }
        assert.deepStrictEqual(yield* json(server, "/tokenize", { prompt: "hé" }), plain)
        assert.deepStrictEqual(yield* json(server, "/tokenize", { content: "hé", model: "demo/model" }), plain)
        assert.deepInclude(yield* json(server, "/tokenize", { prompt: "hé", return_token_strs: true }), { token_strs: ["h", "é"] })
        assert.deepInclude(yield* json(server, "/tokenize", { content: "hé", with_pieces: true }), {
          tokens: [{ id: 104, piece: "h" }, { id: 233, piece: "é" }]
        })
      }
    }))

  it.live("renders a conversation first", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const tokens = tokensOf("user:hi|<think>")
      assert.deepInclude(
        yield* json(server, "/tokenize", { messages: user("hi"), chat_template_kwargs: { enable_thinking: true } }),
        { count: tokens.length, tokens }
      )
    }))

  it.live("names the field to blame", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const cases: ReadonlyArray<readonly [object, number, string]> = [
        [{}, 400, "prompt"],
        [{ prompt: "a", content: "b" }, 400, "content"],
        [{ prompt: 5 }, 400, "prompt"],
        [{ messages: [{ role: "wizard", content: "" }] }, 400, "messages.0.role"],
        [{ prompt: "a", model: "other" }, 404, "model"]
      ]
      for (const [body, status, field] of cases) {
        const response = yield* post(server, "/tokenize", body)
        assert.strictEqual(response.status, status)
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, field)
      }
    }))
})

describe("POST /detokenize", () => {
  it.live("is the way back, in both vendors' words", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, limits: { bodyBytes: 1e6 } })
      assert.deepStrictEqual(yield* json(server, "/detokenize", { tokens: tokensOf("hé") }), { prompt: "hé", content: "hé" })
      assert.deepStrictEqual(yield* json(server, "/detokenize", { tokens: [] }), { prompt: "", content: "" })
      const long = "é, ".repeat(8_000)
      assert.deepStrictEqual(yield* json(server, "/detokenize", { tokens: tokensOf(long) }), { prompt: long, content: long })
      for (const [body, field] of [[{}, "tokens"], [{ tokens: [1, 1 << 20] }, "tokens.1"], [{ tokens: "a" }, "tokens"]] as const) {
        const response = yield* post(server, "/detokenize", body)
        assert.strictEqual(response.status, 400)
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, field)
      }
    }))
})

describe("rendered prompts", () => {
  it.live("are what a chat completion would give to the engine", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const body = { messages: user("hi"), store: true }
      assert.deepStrictEqual(yield* json(server, "/apply-template", body), { prompt: "user:hi|" })
      const rendered = yield* post(server, "/v1/chat/completions/render", body)
      assert.strictEqual(rendered.headers.get("x-mashbox-ignored"), "store")
      assert.deepStrictEqual(yield* Effect.promise((): Promise<unknown> => rendered.json()), {
        prompt: "user:hi|",
        prompt_token_ids: tokensOf("user:hi|"),
        model: "demo/model"
      })
      yield* Effect.promise(() => server.post(body))
      assert.deepStrictEqual(Array.from(server.engine.requests[0]?.tokens ?? []), tokensOf("user:hi|"))
      const refused = yield* post(server, "/apply-template", { messages: user("no template") })
      assert.strictEqual(refused.status, 400)
      assert.strictEqual((yield* Effect.promise(() => errorOf(refused))).code, "template_error")
    }))
})

describe("GET /props", () => {
  it.live("tells the truth in llama-server's words", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...script, model: { contextLength: 2048, slots: 3 } } })
      const props = yield* Effect.promise(async (): Promise<unknown> => (await fetch(`${server.url}/props`)).json())
      assert.deepInclude(props, {
        total_slots: 3,
        model_alias: "demo/model",
        model_path: "demo.gguf",
        modalities: { vision: false, audio: false }
      })
      assert.match(JSON.stringify(props), /"n_ctx":2048/)
    }))
})

describe("every utility route", () => {
  it.live("needs the key where the server has one", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { apiKey: "secret" } })
      for (const path of ["/tokenize", "/detokenize", "/apply-template", "/v1/chat/completions/render", "/v1/completions"]) {
        assert.strictEqual((yield* post(server, path, {})).status, 401, path)
        assert.strictEqual((yield* post(server, path, {}, { authorization: "Bearer secret" })).status, 400, path)
      }
      assert.strictEqual((yield* Effect.promise(() => fetch(`${server.url}/props`))).status, 401)
    }))
})
