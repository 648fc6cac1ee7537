import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"
import { AnthropicError } from "../../../schema/anthropic/Error.ts"
import { Message, TokenCount } from "../../../schema/anthropic/Message.ts"
import { EngineError } from "../../../src/domain/Errors.ts"
import { checkMessagesStream } from "../../support/MessagesStreamChecker.ts"
import { eventually, type Harness, harness, type HarnessOptions, leaving, readUntil, textOf, tokensOf, user } from "./harness.ts"

const says = (text: string): HarnessOptions["script"] => ({ answer: () => ({ tokens: tokensOf(text) }) })

const endless = function*() {
  while (true) yield "x".charCodeAt(0)
}

const send = (server: Harness, body: unknown, options: { readonly path?: string; readonly headers?: Record<string, string> } = {}) =>
  Effect.promise(() =>
    fetch(`${server.url}${options.path ?? "/v1/messages?beta=true"}`, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", ...options.headers },
      body: typeof body === "string" ? body : JSON.stringify(body)
    })
  )

const readText = (response: Response) => Effect.promise(() => response.text())

const readMessage = (response: Response) => Effect.flatMap(Effect.promise(() => response.json()), Schema.decodeUnknownEffect(Message))

const readError = (response: Response) => Effect.flatMap(Effect.promise(() => response.json()), Schema.decodeUnknownEffect(AnthropicError))

const streamed = (server: Harness, body: object) => Effect.flatMap(send(server, { stream: true, ...body }), readText)

const hi = { max_tokens: 100, messages: user("hi") }

const weather = { name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } }
const callText = "I will look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rom\"}}\n</tool_call>"

describe("POST /v1/messages", () => {
  it.live("answers with a message", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("Hello!"), cachedTokens: 3 }) } })
      const response = yield* send(server, { ...hi, model: "claude-opus-5-5", service_tier: "auto" })
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("content-type"), "application/json")
      assert.strictEqual(response.headers.get("x-mashbox-ignored"), "model, service_tier")
      assert.match(response.headers.get("request-id") ?? "", /^req_/)
      assert.strictEqual(response.headers.get("request-id"), response.headers.get("x-request-id"))
      const { usage, ...body } = yield* readMessage(response)
      assert.match(body.id, /^msg_[0-9a-f]{32}$/)
      assert.deepStrictEqual({ ...body, id: "" }, {
        id: "",
        type: "message",
        role: "assistant",
        model: "claude-opus-5-5",
        content: [{ type: "text", text: "Hello!" }],
        stop_reason: "end_turn",
        stop_sequence: null
      })
      assert.deepStrictEqual([usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens], ["user:hi|".length - 3, 3, 6])
      assert.strictEqual(textOf(server.engine.requests[0]!.tokens), "user:hi|")
      assert.strictEqual(server.engine.requests[0]!.maxTokens, 100)
    }))

  it.live("streams the same as events", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("Hello, ✓ \ud83d\ude00!"), cachedTokens: 3 }) } })
      const response = yield* send(server, { ...hi, stream: true })
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
      assert.match(response.headers.get("request-id") ?? "", /^req_/)
      const checked = checkMessagesStream(yield* readText(response))
      assert.deepStrictEqual(checked.content, [{ type: "text", text: "Hello, ✓ 😀!" }])
      assert.deepStrictEqual([checked.stopReason, checked.inputTokens, checked.outputTokens], ["end_turn", "user:hi|".length, 12])
      assert.deepStrictEqual(checked.events.slice(0, 2).map(({ type }) => type), ["message_start", "ping"])
    }))

  it.live("clamps max_tokens to the room that is left", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: endless() }), model: { contextLength: 20 } } })
      const body = yield* readMessage(yield* send(server, { ...hi, max_tokens: 128_000 }))
      assert.strictEqual(body.stop_reason, "max_tokens")
      assert.strictEqual(body.usage.output_tokens, 20 - "user:hi|".length)
      const checked = checkMessagesStream(yield* streamed(server, { ...hi, max_tokens: 2 }))
      assert.deepStrictEqual([checked.stopReason, checked.content], ["max_tokens", [{ type: "text", text: "xx" }]])
    }))

  it.live("names the stop sequence", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("one two three") })
      const body = yield* readMessage(yield* send(server, { ...hi, stop_sequences: ["three", " tw"] }))
      assert.deepStrictEqual([body.stop_reason, body.stop_sequence, body.content], ["stop_sequence", " tw", [{
        type: "text",
        text: "one"
      }]])
      const checked = checkMessagesStream(yield* streamed(server, { ...hi, stop_sequences: [" tw"] }))
      assert.deepStrictEqual([checked.stopReason, checked.content], ["stop_sequence", [{ type: "text", text: "one" }]])
    }))

  it.live("thinks aloud, or in the signature alone, which restores the thought", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("why</think>Because.") })
      const open = checkMessagesStream(yield* streamed(server, { ...hi, thinking: { type: "enabled", budget_tokens: 32_000 } }))
      assert.deepStrictEqual(open.content, [{ type: "thinking", thinking: "why", signature: "mashbox-local" }, {
        type: "text",
        text: "Because."
      }])
      const thinking = { type: "adaptive", display: "omitted" }
      const hidden = checkMessagesStream(yield* streamed(server, { ...hi, thinking }))
      const whole = yield* readMessage(yield* send(server, { ...hi, thinking }))
      assert.deepStrictEqual(hidden.content, whole.content)
      assert.deepInclude(hidden.content[0], { type: "thinking", thinking: "" })

      const history = (content: unknown) => ({ messages: [...user("hi"), { role: "assistant", content }, ...user("more")] })
      const counts = yield* Effect.forEach([open.content, hidden.content], (content) =>
        Effect.flatMap(send(server, history(content), { path: "/v1/messages/count_tokens" }), readText))
      assert.strictEqual(counts[0], counts[1])
      yield* send(server, { ...hi, thinking: { type: "disabled" } })
      assert.strictEqual(textOf(server.engine.requests.at(-1)!.tokens), "user:hi|")
    }))

  it.live("calls tools, streamed and whole", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says(callText) })
      const body = { ...hi, tools: [weather], tool_choice: { type: "auto" } }
      const whole = yield* readMessage(yield* send(server, body))
      const checked = checkMessagesStream(yield* streamed(server, body))
      assert.strictEqual(whole.stop_reason, "tool_use")
      assert.strictEqual(checked.stopReason, "tool_use")
      const withoutIds = (content: typeof whole.content) => content.map((block) => block.type === "tool_use" ? { ...block, id: "" } : block)
      assert.deepStrictEqual(withoutIds(whole.content), [
        { type: "text", text: "I will look." },
        { type: "tool_use", id: "", name: "weather", input: { city: "Rom" } }
      ])
      assert.deepStrictEqual(withoutIds(checked.content), withoutIds(whole.content))
      const [, call] = whole.content
      assert(call?.type === "tool_use")
      assert.match(call.id, /^toolu_[0-9a-f]{32}$/)
    }))

  it.live("ends with the first call where parallel ones are disabled", () =>
    Effect.gen(function*() {
      const call = callText.slice(callText.indexOf("<"))
      const server = yield* harness({ script: says(`${call}\n${call}`) })
      const two = { ...hi, tools: [weather] }
      assert.strictEqual((yield* readMessage(yield* send(server, two))).content.length, 2)
      const one = { ...two, tool_choice: { type: "auto", disable_parallel_tool_use: true } }
      const body = yield* readMessage(yield* send(server, one))
      assert.deepStrictEqual([body.content.length, body.stop_reason], [1, "tool_use"])
    }))

  it.live("has no tools for tool_choice none", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says(callText) })
      const body = yield* readMessage(yield* send(server, { ...hi, tools: [weather], tool_choice: { type: "none" } }))
      assert.deepStrictEqual(body.content, [{ type: "text", text: callText }])
    }))

  it.live("tells in pings how far the prompt is prefilled, where it is asked to", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok") })
      const progress = (body: string) =>
        checkMessagesStream(body).events.flatMap((event) => event.type === "ping" ? event.prompt_progress ?? [] : [])
      const told = progress(yield* streamed(server, { ...hi, return_progress: true }))
      assert.isAbove(told.length, 0)
      assert.deepInclude(told.at(-1), { total: "user:hi|".length, processed: "user:hi|".length })
      assert.deepStrictEqual(progress(yield* streamed(server, hi)), [])
    }))

  it.live("starts the message and keeps it alive while there is no output", () =>
    Effect.gen(function*() {
      const held = yield* Deferred.make<void>()
      const server = yield* harness({
        script: { answer: () => ({ tokens: tokensOf("late"), delay: Deferred.await(held) }) },
        limits: { headMs: 5, keepAliveMs: 5 }
      })
      const response = yield* send(server, { ...hi, stream: true })
      const pings = (text: string) => text.match(/^event: ping$/gm)?.length ?? 0
      const { rest, text } = yield* Effect.promise(() => readUntil(response, (text) => pings(text) > 1))
      yield* Deferred.succeed(held, undefined)
      const checked = checkMessagesStream(text + (yield* Effect.promise(rest)))
      assert.strictEqual(checked.events[0]?.type, "message_start")
      assert.deepStrictEqual(checked.content, [{ type: "text", text: "late" }])
    }))

  it.live("is sent again where the worker died before its output was", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: (_, index) =>
            index === 0
              ? { tokens: [], delay: 30, fault: { _tag: "WorkerLost", afterTokens: 0 } }
              : { tokens: tokensOf("again") }
        },
        limits: { headMs: 1 }
      })
      const checked = checkMessagesStream(yield* streamed(server, hi))
      assert.deepStrictEqual(checked.content, [{ type: "text", text: "again" }])
      assert.strictEqual(server.engine.requests.length, 2)
    }))

  it.live("ends a stream that broke with an error event", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: () => ({
            tokens: tokensOf("abc"),
            interval: 5,
            fault: { _tag: "Failed", afterTokens: 2, code: "out_of_memory", message: "0x7f" }
          })
        }
      })
      const body = yield* streamed(server, hi)
      const checked = checkMessagesStream(body)
      assert.strictEqual(checked.error, "Server error: the engine ran out of memory.")
      assert.notInclude(body, "0x7f")
      const last = checked.events.at(-1)
      assert(last?.type === "error")
      assert.strictEqual(last.error.type, "api_error")
      assert.match(last.request_id, /^msg_/)
    }))

  it.live("frees the slot of a client that leaves", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: endless() }) } })
      const controller = leaving()
      yield* Effect.promise(async () => {
        const response = await fetch(`${server.url}/v1/messages`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ ...hi, max_tokens: 1_000_000, stream: true }),
          signal: controller.signal
        })
        await response.body!.getReader().read()
        controller.abort()
        await eventually(() => server.engine.running() === 0)
      })
      assert.strictEqual(server.engine.cancelled.length, 1)
    }))
})

describe("errors under /v1/messages", () => {
  const failing = (server: Harness, body: unknown, options?: Parameters<typeof send>[2]) =>
    Effect.gen(function*() {
      const response = yield* send(server, body, options)
      const error = yield* readError(response)
      assert.strictEqual(error.request_id, response.headers.get("request-id"))
      assert.strictEqual(error.request_id, response.headers.get("x-request-id"))
      return { status: response.status, type: error.error.type, message: error.error.message, error, headers: response.headers }
    })

  it.live("have Anthropic's shape for whatever is wrong with the request", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok"), limits: { bodyBytes: 4096 }, settings: {} })
      const cases: ReadonlyArray<readonly [unknown, number, string, string]> = [
        ["{", 400, "invalid_request_error", "The request body is not valid JSON."],
        ["[]", 400, "invalid_request_error", "The request body must be a JSON object."],
        [{}, 400, "invalid_request_error", "messages: "],
        [{ ...hi, tool_choice: { type: "any" } }, 400, "invalid_request_error", "tool_choice: "],
        [{ messages: user("no template") }, 400, "invalid_request_error", "roles must alternate"],
        [{ messages: user("x".repeat(5000)) }, 413, "request_too_large", "The request body is larger than 4096 bytes."]
      ]
      for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
        for (const [body, status, type, message] of cases) {
          if (path.endsWith("count_tokens") && message.startsWith("tool_choice")) continue
          const failed = yield* failing(server, body, { path })
          assert.deepStrictEqual([failed.status, failed.type], [status, type], message)
          assert(failed.message.startsWith(message), failed.message)
        }
        const media = yield* failing(server, hi, { path, headers: { "content-type": "text/plain" } })
        assert.deepStrictEqual([media.status, media.type], [415, "invalid_request_error"])
      }
      assert.strictEqual(server.engine.requests.length, 0)
    }))

  it.live("say exactly what the SDK needs to go on without threads", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok") })
      for (const thread of [{ type: "create" }, { type: "continue", previous_message_id: "msg_1" }]) {
        const { error, status } = yield* failing(server, { ...hi, thread })
        assert.strictEqual(status, 400)
        assert.deepStrictEqual(error, {
          type: "error",
          error: {
            type: "invalid_request_error",
            message: "thread: message threads are not supported",
            details: { error_code: "thread_unsupported_request", unsupported: ["thread"] }
          },
          request_id: error.request_id
        })
      }
    }))

  it.live("give both numbers of a prompt that is too long", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...says("ok"), model: { contextLength: 50 } } })
      const failed = yield* failing(server, { ...hi, messages: user("x".repeat(100)) })
      assert.deepStrictEqual(
        [failed.status, failed.type, failed.message],
        [400, "invalid_request_error", `prompt is too long: ${"user:|".length + 100} tokens > 49 maximum`]
      )
    }))

  it.live("are 401, 403, 404 and 405 of the edge", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok"), settings: { apiKey: "sk" } })
      const key = { "x-api-key": "sk" }
      const cases: ReadonlyArray<readonly [Parameters<typeof send>[2], number, string]> = [
        [{}, 401, "authentication_error"],
        [{ headers: { authorization: "Bearer no" }, path: "/v1/messages/count_tokens" }, 401, "authentication_error"],
        [{ headers: { ...key, origin: "http://evil.example" } }, 403, "permission_error"],
        [{ headers: key, path: "/v1/messages/batches" }, 404, "not_found_error"]
      ]
      for (const [options, status, type] of cases) {
        const failed = yield* failing(server, hi, options)
        assert.deepStrictEqual([failed.status, failed.type], [status, type])
      }
      for (const headers of [key, { authorization: "Bearer sk" }]) {
        assert.strictEqual((yield* send(server, hi, { headers })).status, 200)
      }
      const wrong = yield* Effect.promise(() => fetch(`${server.url}/v1/messages`, { headers: key }))
      assert.deepStrictEqual([wrong.status, wrong.headers.get("allow")], [405, "POST, HEAD"])
      assert.strictEqual((yield* readError(wrong)).error.type, "invalid_request_error")
    }))

  it.live("are 529 while the model loads and where it cannot be loaded", () =>
    Effect.gen(function*() {
      const loading = yield* failing(yield* harness({ script: { ...says("ok"), load: "never" } }), hi)
      assert.deepStrictEqual([loading.status, loading.type], [529, "overloaded_error"])
      assert.strictEqual(loading.headers.get("x-should-retry"), "true")
      assert.isAtLeast(Number(loading.headers.get("retry-after")), 1)
      const error = new EngineError({ reason: "LoadFailed", message: "/secret/path" })
      const failed = yield* failing(yield* harness({ script: { ...says("ok"), load: { error } } }), hi)
      assert.strictEqual(failed.status, 529)
      assert.notInclude(failed.message, "secret")
    }))

  it.live("are 429 for a tenant with too many requests and 529 for a full server", () =>
    Effect.gen(function*() {
      for (
        const [admission, status, type] of [
          [{ maxWaitingPerTenant: 0 }, 429, "rate_limit_error"],
          [{ maxWaiting: 0 }, 529, "overloaded_error"]
        ] as const
      ) {
        const server = yield* harness({ script: { answer: () => ({ tokens: endless() }) }, settings: { slots: 1 }, admission })
        const running = yield* send(server, { ...hi, max_tokens: 1_000_000, stream: true })
        const failed = yield* failing(server, hi)
        assert.deepStrictEqual([failed.status, failed.type], [status, type])
        assert.isAtLeast(Number(failed.headers.get("retry-after")), 1)
        yield* Effect.promise(() => running.body!.cancel())
      }
    }))

  it.live("are 500 where the engine fails before there is output", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: [], fault: { _tag: "Failed", afterTokens: 0, code: "out_of_memory", message: "0x7f" } }) }
      })
      for (const stream of [false, true]) {
        const failed = yield* failing(server, { ...hi, stream })
        assert.deepStrictEqual(
          [failed.status, failed.type, failed.message],
          [500, "api_error", "Server error: the engine ran out of memory."]
        )
      }
    }))
})

describe("POST /v1/messages/count_tokens", () => {
  const path = "/v1/messages/count_tokens?beta=true"
  const readCount = (response: Response) => Effect.flatMap(Effect.promise(() => response.json()), Schema.decodeUnknownEffect(TokenCount))

  it.live("answers many at once while every slot is taken", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: endless() }) },
        settings: { slots: 1 },
        admission: { maxWaiting: 0 }
      })
      const running = yield* send(server, { ...hi, max_tokens: 1_000_000, stream: true })
      const counts = yield* Effect.forEach(
        Array.from({ length: 24 }, (_, index) => index),
        (index) => Effect.flatMap(send(server, { messages: user("f".repeat(index)), tools: [] }, { path }), readCount),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(counts, Array.from({ length: 24 }, (_, index) => ({ input_tokens: "user:|".length + index })))
      assert.strictEqual(server.engine.requests.length, 1)
      yield* Effect.promise(() => running.body!.cancel())
    }))

  it.live("counts what the same request generates from, also while the model loads", () =>
    Effect.gen(function*() {
      const loading = yield* harness({ script: { ...says("ok"), load: "never" } })
      const ready = yield* harness({ script: says("ok") })
      const body = { messages: user("hi"), system: [{ type: "text", text: "be brief" }], thinking: { type: "enabled" }, max_tokens: 5 }
      const response = yield* send(loading, body, { path })
      assert.strictEqual(response.headers.get("x-mashbox-ignored"), "max_tokens")
      assert.match(response.headers.get("request-id") ?? "", /^req_/)
      const { usage } = yield* readMessage(yield* send(ready, body))
      assert.deepStrictEqual(yield* readCount(response), { input_tokens: usage.input_tokens })
    }))
})

describe("sessions", () => {
  it.live("come from Claude Code's header, its metadata or the cache key, and are logged as a hash", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok") })
      const metadata = (session: string) => ({ ...hi, metadata: { user_id: JSON.stringify({ session_id: session }) } })
      const header = { "x-claude-code-session-id": "s1" }
      yield* send(server, hi)
      yield* send(server, hi, { headers: header })
      yield* send(server, metadata("s1"))
      yield* send(server, metadata("other"), { headers: header })
      yield* send(server, hi, { headers: { ...header, "x-claude-code-agent-id": "a" } })
      yield* send(server, { ...hi, prompt_cache_key: "s1" }, { headers: { ...header, "x-claude-code-agent-id": "a" } })
      const lines = server.log.map((line) => JSON.parse(line)).filter((line) => line.route === "/v1/messages")
      const [none, byHeader, byMetadata, headerFirst, agent, byKey] = lines.map((line) => line.session)
      assert.isUndefined(none)
      assert.match(byHeader, /^[0-9a-f]{12}$/)
      assert.deepStrictEqual([byMetadata, headerFirst, byKey], [byHeader, byHeader, byHeader])
      assert.notStrictEqual(agent, byHeader)
    }))
})

describe("/api/hello", () => {
  it.live("answers Claude Code's first question", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok") })
      for (const method of ["HEAD", "GET"]) {
        assert.strictEqual((yield* Effect.promise(() => fetch(`${server.url}/api/hello`, { method }))).status, 200)
      }
    }))
})
