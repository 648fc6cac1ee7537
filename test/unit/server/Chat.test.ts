import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { ServerResponse } from "node:http"
import { ChatCompletion, type ChatCompletionChunk } from "../../../schema/openai/Chat.ts"
import type { NativeSubmit } from "../../../src/engine/Native.ts"
import type { ScriptedAnswer } from "../../../src/engine/ScriptedScheduler.ts"
import { type ChatExpectation, checkChatStream } from "../../support/ChatStreamChecker.ts"
import { answerOf, errorOf, events, eventually, harness, leaving, queued, readUntil, textOf, tokensOf, user } from "./harness.ts"

const says = (text: string) => ({ answer: () => ({ tokens: tokensOf(text) }) })

const endless = function*() {
  while (true) yield "x".charCodeAt(0)
}

/** Chunks of a stream that ended, checked. */
const chunksOf = (body: string, expectation: ChatExpectation = {}) => checkChatStream(body, expectation).chunks
const contentOf = (chunks: ReadonlyArray<ChatCompletionChunk>) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")
const reasoningOf = (chunks: ReadonlyArray<ChatCompletionChunk>) =>
  chunks.map((chunk) => chunk.choices[0]?.delta.reasoning_content ?? "").join("")

describe("one body", () => {
  it.live("answers in the schema's shape, with usage and timings", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("Hello!"), cachedTokens: 3 }) } })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), metadata: { a: "b" }, who: 1, store: true }))
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("content-type"), "application/json")
      assert.strictEqual(response.headers.get("x-mashbox-ignored"), "metadata, who, store")
      const body = yield* Schema.decodeUnknownEffect(ChatCompletion)(yield* Effect.promise(() => response.json()))
      assert.deepStrictEqual(body.choices, [
        { index: 0, message: { role: "assistant", content: "Hello!" }, finish_reason: "stop", logprobs: null }
      ])
      assert.deepStrictEqual(body.usage, {
        prompt_tokens: "user:hi|".length,
        completion_tokens: 6,
        total_tokens: "user:hi|".length + 6,
        prompt_tokens_details: { cached_tokens: 3 },
        timings: { agent_turn_cache_hit: false, cached_prefix_tokens: 3, prefilled_tokens: "user:hi|".length - 3 }
      })
      assert.strictEqual(body.timings?.prompt_n, "user:hi|".length - 3)
      assert.strictEqual(body.timings?.cache_n, 3)
      assert.strictEqual(body.model, "demo/model")
    }))

  it.live("hands every sampling field to the engine", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok") })
      yield* Effect.promise(() =>
        server.post({
          model: "demo/model",
          messages: user("hi"),
          temperature: 3.5,
          top_p: 0.5,
          top_k: 7,
          min_p: 0.25,
          seed: 99,
          rep_pen: 1.5,
          rep_window: 32,
          frequency_penalty: -1,
          presence_penalty: 2,
          logit_bias: { "5": -100, "6": 1.5 },
          max_tokens: 9,
          max_completion_tokens: 8
        })
      )
      const { id: _, tokens, stopTokens, ...rest } = server.engine.requests[0]!
      assert.strictEqual(textOf(tokens), "user:hi|")
      assert.deepStrictEqual([...stopTokens], [3])
      assert.deepStrictEqual(rest, {
        maxTokens: 8,
        temperature: 3.5,
        topP: 0.5,
        topK: 7,
        minP: 0.25,
        seed: 99,
        repetitionPenalty: 1.5,
        repetitionWindow: 32,
        frequencyPenalty: -1,
        presencePenalty: 2,
        logitBias: [[5, -100], [6, 1.5]]
      })
    }))

  it.live("clamps max_tokens to the room left and refuses a prompt without room", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: endless() }), model: { contextLength: 20 } } })
      const full = yield* Effect.promise(() => answerOf(server.post({ messages: user("0123456"), max_tokens: 1000 })))
      assert.strictEqual(full.choices[0]?.finish_reason, "length")
      assert.strictEqual(full.usage.total_tokens, 20)
      const over = yield* Effect.promise(() => server.post({ messages: user("0123456789abcd") }))
      assert.strictEqual(over.status, 400)
      assert.deepStrictEqual(yield* Effect.promise(() => over.json()), {
        error: {
          message:
            "This model's maximum context length is 20 tokens. However, your messages resulted in 20 tokens. Please reduce the length of the messages.",
          type: "invalid_request_error",
          param: "messages",
          code: "context_length_exceeded"
        }
      })
      assert.strictEqual(server.engine.requests.length, 1)
    }))

  it.live("splits reasoning from the answer", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("\nfirst\nthen\n</think>\n\nAnswer") })
      const body = yield* Effect.promise(() => answerOf(server.post({ messages: user("hi"), enable_thinking: true })))
      assert.deepStrictEqual(body.choices[0]?.message, { role: "assistant", content: "Answer", reasoning_content: "first\nthen" })
    }))

  it.live("is sent again once after a lost worker, whatever it had produced", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: (_, index) => ({ tokens: tokensOf("Hello!"), ...(index === 0 ? { fault: { _tag: "WorkerLost", afterTokens: 3 } } : {}) })
        }
      })
      const body = yield* Effect.promise(() => answerOf(server.post({ messages: user("hi") })))
      assert.strictEqual(body.choices[0]?.message.content, "Hello!")
      assert.strictEqual(body.usage.completion_tokens, 6)
      const [first, second] = server.engine.requests
      assert.strictEqual(server.engine.requests.length, 2)
      assert.strictEqual(first?.seed, second?.seed)
    }))

  it.live("fails with 500 when the second run is lost too", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: [], fault: { _tag: "WorkerLost", afterTokens: 0 } }) } })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi") }))
      assert.strictEqual(response.status, 500)
      const error = yield* Effect.promise(() => errorOf(response))
      assert.deepInclude(error, { type: "server_error", code: "engine_lost" })
      assert.strictEqual(server.engine.requests.length, 2)
    }))
})

describe("stream", () => {
  it.live("sends the role, the deltas, the finish, the usage and [DONE], in that order", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello, \u{1f600} \"x\"\n") })
      const response = yield* Effect.promise(() =>
        server.post({ messages: user("hi"), stream: true, stream_options: { include_usage: true } })
      )
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
      const body = yield* Effect.promise(() => response.text())
      const all = events(body)
      const chunks = chunksOf(body, { includeUsage: true })
      assert.strictEqual(all.length, chunks.length + 1)
      assert.strictEqual(all.at(-1), "[DONE]")
      assert.deepStrictEqual(chunks[0]?.choices[0]?.delta, { role: "assistant", content: "" })
      assert.strictEqual(contentOf(chunks), "Hello, \u{1f600} \"x\"\n")
      assert.strictEqual(new Set(chunks.map((chunk) => chunk.id)).size, 1)
      assert.deepStrictEqual(chunks.map((chunk) => chunk.choices[0]?.finish_reason ?? null), [
        ...Array(chunks.length - 2).fill(null),
        "stop",
        null
      ])
      const [finish, usage] = chunks.slice(-2)
      assert.isDefined(finish?.timings)
      assert.isUndefined(finish?.usage)
      assert.deepStrictEqual(usage?.choices, [])
      assert.strictEqual(usage?.usage?.completion_tokens, "Hello, \u{1f600} \"x\"\n".length)
    }))

  it.live("leaves the usage chunk out when it was not asked for", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("a") })
      const body = yield* Effect.promise(async () => (await server.post({ messages: user("hi"), stream: true })).text())
      assert.isTrue(chunksOf(body).every((chunk) => chunk.usage === undefined && chunk.choices.length === 1))
    }))

  it.live("gives the same text as one body does, reasoning apart", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("<think>\nwhy\n\nnot </think>\n\nBecause </think> is text\n") })
      const streamed = yield* Effect.promise(async () => (await server.post({ messages: user("hi"), stream: true })).text())
      const whole = yield* Effect.promise(() => answerOf(server.post({ messages: user("hi") })))
      assert.strictEqual(contentOf(chunksOf(streamed)), "Because </think> is text\n")
      assert.strictEqual(reasoningOf(chunksOf(streamed)), "why\n\nnot ")
      assert.strictEqual(whole.choices[0]?.message.content, "Because </think> is text\n")
      assert.strictEqual(whole.choices[0]?.message.reasoning_content, "why\n\nnot ")
    }))

  it.live("ends before a stop string and cancels the rest in the engine", () =>
    Effect.gen(function*() {
      const text = function*() {
        yield* tokensOf("one two END")
        yield* endless()
      }
      const server = yield* harness({ script: { answer: () => ({ tokens: text() }) } })
      const body = yield* Effect.promise(async () =>
        (await server.post({ messages: user("hi"), stream: true, stop: ["EN", "END"] })).text()
      )
      const chunks = chunksOf(body)
      assert.strictEqual(contentOf(chunks), "one two ")
      assert.strictEqual(chunks.at(-1)?.choices[0]?.finish_reason, "stop")
      assert.strictEqual(chunks.at(-1)?.timings?.predicted_n, "one two EN".length)
      assert.strictEqual(server.engine.cancelled.length, 1)
      assert.strictEqual(yield* server.admission.running, 0)
    }))

  it.live("does not walk through Node's objects when the client leaves", () =>
    Effect.gen(function*() {
      // What a structural hash of a response would come upon: it once took the server minutes of CPU for each client that left.
      let walked = false
      const trap = (message: unknown) => {
        if (
          typeof message !== "object" || message === null || !("response" in message) || !(message.response instanceof ServerResponse)
        ) return
        Object.defineProperty(message.response, "trap", { enumerable: true, get: () => (walked = true) })
      }
      subscribe("http.server.request.start", trap)
      yield* Effect.addFinalizer(() => Effect.sync(() => unsubscribe("http.server.request.start", trap)))
      const server = yield* harness({ script: { answer: () => ({ tokens: endless(), interval: "1 millis" }) } })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      const { reader } = yield* Effect.promise(() => readUntil(response, (text) => text.includes("\"content\":\"x\"")))
      yield* Effect.promise(() => reader.cancel())
      yield* Effect.promise(() => eventually(() => server.log.some((line) => line.includes("client_left"))))
      assert.strictEqual((yield* Effect.promise(() => fetch(`${server.url}/health`))).status, 200)
      assert.isFalse(walked)
    }))

  it.live("frees the slot when the client leaves", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: endless(), interval: "1 millis" }) } })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      const { reader } = yield* Effect.promise(() => readUntil(response, (text) => text.includes("\"content\":\"x\"")))
      assert.strictEqual(yield* server.admission.running, 1)
      yield* Effect.promise(() => reader.cancel())
      yield* Effect.promise(() => eventually(() => server.engine.cancelled.length === 1))
      yield* Effect.promise(() => eventually(() => server.log.some((line) => line.includes("client_left"))))
      assert.strictEqual(yield* server.admission.running, 0)
    }))

  it.live("is sent again when the worker was lost before any output", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: (_, index) => ({ tokens: tokensOf("Hello!"), ...(index === 0 ? { fault: { _tag: "WorkerLost", afterTokens: 0 } } : {}) })
        },
        limits: { headMs: 0 }
      })
      const body = yield* Effect.promise(async () => (await server.post({ messages: user("hi"), stream: true })).text())
      assert.strictEqual(contentOf(chunksOf(body)), "Hello!")
      assert.strictEqual(chunksOf(body).filter((chunk) => chunk.choices[0]?.delta.role !== undefined).length, 1)
      assert.strictEqual(server.engine.requests.length, 2)
    }))

  it.live("ends with an error event when the worker is lost after output, and is not sent again", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: tokensOf("Hello!"), interval: "5 millis", fault: { _tag: "WorkerLost", afterTokens: 3 } }) }
      })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      assert.strictEqual(response.status, 200)
      const body = yield* Effect.promise(() => response.text())
      assert.strictEqual(contentOf(chunksOf(body)), "Hel")
      const last = events(body).at(-1)
      assert.deepInclude(last, {
        error: {
          message: "Server error: the engine stopped while it worked on this request.",
          type: "server_error",
          param: null,
          code: "engine_lost",
          request_id: chunksOf(body)[0]?.id
        }
      })
      assert.strictEqual(server.engine.requests.length, 1)
    }))

  it.live("answers with a status when the engine refuses before any output", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: () => ({ tokens: [], fault: { _tag: "Failed", afterTokens: 0, code: "out_of_memory", message: "0xdeadbeef /secret" } })
        }
      })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      assert.strictEqual(response.status, 500)
      const text = yield* Effect.promise(() => response.text())
      assert.include(text, "out_of_memory")
      assert.notInclude(text, "secret")
    }))

  it.live("shows that it lives while there is no output", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: [], fault: { _tag: "Hang", afterTokens: 0 } }) },
        limits: { headMs: 5, keepAliveMs: 10 }
      })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      const comments = (text: string) => events(text).filter((event) => event === ": keep-alive").length
      const { reader, text } = yield* Effect.promise(() => readUntil(response, (text) => comments(text) >= 2))
      assert.strictEqual(events(text).length, 1 + comments(text))
      yield* Effect.promise(() => reader.cancel())
    }))

  it.live("loses and reorders nothing for a client that pauses", () =>
    Effect.gen(function*() {
      const count = 12_000
      const line = (token: number) => `${token} ${"é".repeat(token % 700)}\n`
      const server = yield* harness({
        script: { answer: () => ({ tokens: Array.from({ length: count }, (_, index) => index + 4) }) },
        decode: line
      })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      yield* Effect.promise(() => eventually(() => server.engine.running() === 0))
      const body = yield* Effect.promise(() => response.text())
      const expected = Array.from({ length: count }, (_, index) => line(index + 4)).join("")
      assert.isTrue(contentOf(chunksOf(body)) === expected)
      assert.strictEqual(events(body).at(-1), "[DONE]")
    }))

  it.live("cuts off a client that reads nothing", () =>
    Effect.gen(function*() {
      const line = "y".repeat(2_000)
      const long = function*() {
        while (true) yield* tokensOf(line)
      }
      const server = yield* harness({ script: { answer: () => ({ tokens: long() }) }, limits: { slowReaderMs: 50, keepAliveMs: 20 } })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      yield* Effect.promise(() => eventually(() => server.log.some((entry) => entry.includes("slow_reader"))))
      assert.strictEqual(server.engine.cancelled.length, 1)
      const rest = yield* Effect.promise(() => response.text().then(() => "complete", () => "cut"))
      assert.strictEqual(rest, "cut")
    }))
})

describe("the queue", () => {
  it.live("answers 429 with Retry-After when the tenant's places are taken, and serves those who wait", () =>
    Effect.gen(function*() {
      const release: Array<() => void> = []
      const gate = (request: NativeSubmit): ScriptedAnswer => ({
        tokens: tokensOf("ok"),
        ...(textOf(request.tokens).includes("hold") ? { fault: { _tag: "Hang", afterTokens: 1 } } : {})
      })
      const server = yield* harness({ script: { answer: gate }, settings: { slots: 1 }, admission: { maxWaitingPerTenant: 1 } })
      const hold = leaving()
      release.push(() => hold.abort())
      const holder = server.post({ messages: user("hold") }, { signal: hold.signal }).catch(() => undefined)
      yield* Effect.promise(() => eventually(() => server.engine.requests.length === 1))
      const waits = server.post({ messages: user("waits") })
      yield* queued(server, 1)
      const refused = yield* Effect.promise(() => server.post({ messages: user("refused"), stream: true }))
      assert.strictEqual(refused.status, 429)
      assert.isAtLeast(Number(refused.headers.get("retry-after")), 1)
      assert.strictEqual((yield* Effect.promise(() => errorOf(refused))).code, "tenant_queue_full")
      for (const free of release) free()
      yield* Effect.promise(() => holder)
      const { timings } = yield* Effect.promise(() => answerOf(waits))
      assert.isAbove(timings?.queue_ms ?? 0, 0)
    }))

  it.live("answers 503 with Retry-After while the model loads", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: [] }), load: "never" } })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi") }))
      assert.strictEqual(response.status, 503)
      assert.isAtLeast(Number(response.headers.get("retry-after")), 1)
      assert.strictEqual((yield* Effect.promise(() => errorOf(response))).code, "model_loading")
    }))
})

describe("the log", () => {
  it.live("has one line per request and nothing of what was said", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("canaryoutput"), settings: { apiKey: "canarykey" } })
      const send = (body: unknown, key: string) =>
        server.post(body, { headers: { authorization: `Bearer ${key}`, "x-session-id": "canarysession" } }).then((response) =>
          response.text()
        )
      yield* Effect.promise(() => send({ messages: user("canaryprompt"), prompt_cache_key: "canarycache" }, "canarykey"))
      yield* Effect.promise(() => send({ messages: user("canaryprompt"), stream: true }, "canarykey"))
      yield* Effect.promise(() => send({ messages: user("canaryprompt"), temperature: "canary" }, "canarykey"))
      yield* Effect.promise(() => send("{canary", "canarykey"))
      yield* Effect.promise(() => send({ messages: user("canaryprompt") }, "canarywrong"))
      yield* Effect.promise(() => fetch(`${server.url}/canary?canary=1`).then((response) => response.text()))
      yield* Effect.promise(() => eventually(() => server.log.length >= 6))
      assert.strictEqual(server.log.length, 6)
      for (const line of server.log) {
        assert.notInclude(line, "canary")
        const entry = JSON.parse(line)
        assert.containsAllKeys(entry, ["time", "level", "message", "request", "method", "route", "tenant", "status", "outcome", "ms"])
      }
      assert.deepStrictEqual(server.log.map((line) => JSON.parse(line).status), [200, 200, 400, 400, 401, 401])
    }))
})
