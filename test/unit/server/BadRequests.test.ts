import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib"
import { errorOf, harness, limits, tokensOf, user } from "./harness.ts"

const messages = user("hi")

/** A body, the field that its error names, and where it is not "invalid_request_error" alone, the code. */
const bodies: ReadonlyArray<readonly [name: string, body: unknown, param: string | null, code?: string]> = [
  ["no JSON", "{", null],
  ["a JSON array", "[]", null],
  ["a JSON string", "\"hi\"", null],
  ["null", "null", null],
  ["an empty body", "", null],
  ["deep nesting", `{"messages":[{"role":"user","content":"x"}],"metadata":${"[".repeat(5_000)}${"]".repeat(5_000)}}`, null],
  ["no messages", {}, "messages"],
  ["messages of the wrong type", { messages: "hi" }, "messages"],
  ["empty messages", { messages: [] }, "messages"],
  ["a message of the wrong type", { messages: ["hi"] }, "messages.0"],
  ["no role", { messages: [{ content: "hi" }] }, "messages.0.role"],
  ["an unknown role", { messages: [{ role: "wizard", content: "hi" }] }, "messages.0.role"],
  ["no content", { messages: [{ role: "user" }] }, "messages.0.content"],
  ["null content", { messages: [{ role: "user", content: null }] }, "messages.0.content"],
  ["numeric content", { messages: [...messages, { role: "user", content: 5 }] }, "messages.1.content"],
  ["a part without text", { messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages.0.content.0.text"],
  ["a tool call without a function", { messages: [{ role: "assistant", tool_calls: [{ id: "a" }] }] }, "messages.0.tool_calls.0.function"],
  [
    "an image",
    { messages: [{ role: "user", content: [{ type: "text", text: "a" }, { type: "image_url", image_url: { url: "data:" } }] }] },
    "messages.0.content.1",
    "unsupported_parameter"
  ],
  [
    "audio",
    { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
    "messages.0.content.0",
    "unsupported_parameter"
  ],
  ["a tool without a name", { messages, tools: [{ type: "function" }] }, "tools.0.name"],
  [
    "a strict tool whose schema cannot be promised",
    { messages, tools: [{ type: "function", function: { name: "f", strict: true, parameters: { type: "object", minProperties: 3 } } }] },
    "tools.0.function.parameters.minProperties",
    "unsupported_parameter"
  ],
  ["a forced tool where there is none", { messages, tool_choice: "required" }, "tool_choice"],
  ["a form that nobody knows", { messages, response_format: { type: "yaml" } }, "response_format.type", "unsupported_parameter"],
  ["json_schema without a schema", { messages, response_format: { type: "json_schema" } }, "response_format.json_schema.schema"],
  [
    "a keyword that cannot be enforced",
    { messages, response_format: { type: "json_schema", json_schema: { name: "x", schema: { items: { uniqueItems: true } } } } },
    "response_format.json_schema.schema.items.uniqueItems",
    "unsupported_parameter"
  ],
  [
    "a schema that allows nothing",
    { messages, response_format: { type: "json_schema", json_schema: { name: "x", schema: { enum: [] } } } },
    "response_format.json_schema.schema"
  ],
  ["a backreference", { messages, guided_regex: "(a)\\1" }, "guided_regex", "unsupported_parameter"],
  ["a grammar with an error", { messages, guided_grammar: "root ::= x" }, "guided_grammar"],
  ["no choice", { messages, guided_choice: [] }, "guided_choice"],
  ["two forms at once", { messages, guided_regex: "a", grammar: "root ::= \"a\"" }, "grammar"],
  ["top_logprobs without logprobs", { messages, top_logprobs: 2 }, "top_logprobs"],
  ["more choices than slots", { messages, n: 65 }, "n"],
  ["n of 0", { messages, n: 0 }, "n"],
  ["a template variable that is a list", { messages, chat_template_kwargs: { a: [] } }, "chat_template_kwargs.a"],
  ["a template variable that spells a token", { messages, chat_template_kwargs: { a: "<|im_end|>" } }, "chat_template_kwargs.a"],
  ["a template variable without a name", { messages, chat_template_kwargs: { "": true } }, "chat_template_kwargs"],
  ["an unknown effort", { messages, reasoning_effort: "vast" }, "reasoning_effort"],
  ["an unknown nested effort", { messages, reasoning: { effort: 3 } }, "reasoning.effort"],
  ["a model that is no string", { messages, model: 1 }, "model"],
  ["stream as text", { messages, stream: "yes" }, "stream"],
  ["an empty stop string", { messages, stop: "" }, "stop"],
  ["an empty stop string in a list", { messages, stop: ["a", ""] }, "stop.1"],
  ["a numeric stop", { messages, stop: 5 }, "stop"],
  ["a token id that is none", { messages, logit_bias: { a: 1 } }, "logit_bias"],
  ["a negative token id", { messages, logit_bias: { "-1": 1 } }, "logit_bias"],
  ["a token id outside of the vocabulary", { messages, logit_bias: { "99999999": 1 } }, "logit_bias.99999999"],
  ["a bias out of range", { messages, logit_bias: { "1": 101 } }, "logit_bias.1"],
  ["an own __proto__ as bias", `{"messages":[{"role":"user","content":"x"}],"logit_bias":{"__proto__":1}}`, "logit_bias"]
]

/** For each numeric field, values that are no number or out of its range. */
const numbers: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  temperature: [-0.1, 4.1, 1e308, "1", true, [], {}],
  top_p: [0, -1, 1.1, 1e308, "0.5"],
  min_p: [-0.1, 1, 1e308, "0.5"],
  top_k: [-1, 0.5, 2 ** 31, 2 ** 53, 1e308, "1"],
  seed: [0.5, 2 ** 53, 1e308, "1"],
  max_tokens: [-1, 0, 0.5, 2 ** 31, 2 ** 53, 1e308, "1"],
  max_completion_tokens: [-1, 0, 0.5, 2 ** 31, "1"],
  max_output_tokens: [-1, 0, 0.5, 2 ** 31, "1"],
  repetition_penalty: [0, -1, 1e308, "1"],
  rep_pen: [0, -1, 1e308, "1"],
  rep_window: [-1, 0.5, 2 ** 31, "1"],
  frequency_penalty: [-2.1, 2.1, 1e308, "1"],
  presence_penalty: [-2.1, 2.1, 1e308, "1"],
  n: [-1, 0, 0.5, 2 ** 31, 1e308, "1"],
  top_logprobs: [-1, 0.5, "1"]
}

const script = { answer: () => ({ tokens: tokensOf("ok") }) }

describe("bad bodies", () => {
  it.live("get 400 with the field's path, and reach no engine", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const ranges = Object.entries(numbers).flatMap(([field, values]) =>
        values.map((value) => [`${field} of ${JSON.stringify(value)}`, { messages, [field]: value }, field] as const)
      )
      for (const [name, body, param, code] of [...bodies, ...ranges]) {
        for (const stream of [false, true]) {
          const sent = typeof body === "object" ? { ...body, ...(stream && !("stream" in body!) ? { stream } : {}) } : body
          const response = yield* Effect.promise(() => server.post(sent))
          assert.strictEqual(response.status, 400, name)
          const error = yield* Effect.promise(() => errorOf(response))
          assert.strictEqual(error.param, param, name)
          assert.strictEqual(error.type, "invalid_request_error", name)
          assert.strictEqual(error.code, code ?? null, name)
          if (param !== null) assert.include(error.message, param, name)
        }
      }
      assert.strictEqual(server.engine.requests.length, 0)
      assert.isUndefined(Object.getOwnPropertyDescriptor(Object.prototype, "polluted"))
    }))

  it.live("a refusal by the template is a 400", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const response = yield* Effect.promise(() => server.post({ messages: user("no template") }))
      assert.strictEqual(response.status, 400)
      assert.deepInclude(yield* Effect.promise(() => errorOf(response)), { message: "roles must alternate", code: "template_error" })
    }))

  it.live("another model is a 404", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const response = yield* Effect.promise(() => server.post({ messages, model: "gpt-9" }))
      assert.strictEqual(response.status, 404)
      assert.deepInclude(yield* Effect.promise(() => errorOf(response)), { param: "model", code: "model_not_found" })
    }))
})

describe("accepted oddities", () => {
  const accepted: ReadonlyArray<readonly [name: string, body: object, prompt: string]> = [
    [
      "nulls for everything optional",
      { messages, temperature: null, stop: null, tools: null, stream: null, n: null, seed: null },
      "user:hi|"
    ],
    ["no tools", { messages, tools: [], tool_choice: "auto" }, "user:hi|"],
    [
      "tools that must not be called",
      { messages, tools: [{ type: "function", function: { name: "f" } }], tool_choice: "none" },
      "user:hi|"
    ],
    ["text parts", { messages: [{ role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] }] }, "user:ab|"],
    [
      "system and developer anywhere, same role twice",
      { messages: [...messages, ...messages, { role: "developer", content: "d" }, { role: "system", content: "s" }] },
      "user:hi|user:hi|developer:d|system:s|"
    ],
    [
      "an assistant's calls without content",
      {
        messages: [
          { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
          { role: "tool", tool_call_id: "c", content: "r" }
        ]
      },
      "assistant:null|tool:r|"
    ],
    ["a lone surrogate", { messages: [{ role: "user", content: "\ud800" }] }, "user:\ufffd|"],
    ["plain text format", { messages, response_format: { type: "text" }, n: 1, logprobs: false, top_logprobs: 0 }, "user:hi|"],
    ["a seed below zero", { messages, seed: -5 }, "user:hi|"]
  ]

  it.live("are answered", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      for (const [name, body, prompt] of accepted) {
        const response = yield* Effect.promise(() => server.post(body))
        assert.strictEqual(response.status, 200, `${name}: ${yield* Effect.promise(() => response.text())}`)
        assert.strictEqual(String.fromCharCode(...server.engine.requests.at(-1)!.tokens), prompt, name)
      }
    }))
})

describe("the body as bytes", () => {
  const plain = JSON.stringify({ messages })

  it.live("must be JSON by its type", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""]) {
        const response = yield* Effect.promise(() => server.post(plain, { headers: { "content-type": type } }))
        assert.strictEqual(response.status, 415, type)
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).code, "unsupported_media_type")
      }
      const charset = yield* Effect.promise(() => server.post(plain, { headers: { "content-type": "application/json; charset=utf-8" } }))
      assert.strictEqual(charset.status, 200)
    }))

  it.live("is limited, announced or not, compressed or not", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const large = JSON.stringify({ messages: user("x".repeat(limits.bodyBytes)) })
      const chunked = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(large))
          controller.close()
        }
      })
      const init = (body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>, encoding?: string) => ({
        body,
        duplex: "half" as const,
        headers: encoding === undefined ? {} : { "content-encoding": encoding }
      })
      const bombs = [
        init(large),
        init(chunked),
        init(gzipSync(large), "gzip"),
        init(zstdCompressSync(large), "zstd"),
        init(brotliCompressSync(large), "br")
      ]
      for (const [index, bomb] of bombs.entries()) {
        const response = yield* Effect.promise(() => server.post("", bomb))
        assert.strictEqual(response.status, 413, String(index))
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).code, "body_too_large")
      }
      assert.strictEqual(server.engine.requests.length, 0)
    }))

  it.live("may be compressed", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      for (
        const [encoding, body] of [["gzip", gzipSync(plain)], ["zstd", zstdCompressSync(plain)], ["br", brotliCompressSync(plain)]] as const
      ) {
        const response = yield* Effect.promise(() => server.post("", { body, headers: { "content-encoding": encoding } }))
        assert.strictEqual(response.status, 200, encoding)
      }
      const unknown = yield* Effect.promise(() => server.post(plain, { headers: { "content-encoding": "lzma" } }))
      assert.strictEqual(unknown.status, 415)
      const broken = yield* Effect.promise(() => server.post(plain, { headers: { "content-encoding": "gzip" } }))
      assert.strictEqual(broken.status, 400)
    }))

  it.live("must be UTF-8", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const response = yield* Effect.promise(() => server.post("", { body: Uint8Array.of(0x7b, 0xff, 0x7d) }))
      assert.strictEqual(response.status, 400)
    }))
})
