import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { request as httpRequest } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { InputItemList, InputTokens, ResponseDeleted, ResponseObject } from "../../../schema/openai/Responses.ts"
import type { ScriptedAnswer } from "../../../src/engine/ScriptedScheduler.ts"
import { checkResponsesStream } from "../../support/ResponsesStreamChecker.ts"
import { errorOf, eventually, type Harness, harness, leaving, readUntil, textOf, tokensOf } from "./harness.ts"

const says = (text: string) => ({ answer: () => ({ tokens: tokensOf(text) }) })

const readResponse = Schema.decodeUnknownPromise(ResponseObject)

const send = (server: Harness, path: string, init?: RequestInit) =>
  Effect.promise(() => fetch(`${server.url}${path}`, { ...init, headers: { "content-type": "application/json", ...init?.headers } }))

const post = (server: Harness, body: unknown, init?: RequestInit) =>
  send(server, "/v1/responses", { method: "POST", body: JSON.stringify(body), ...init })

const create = (server: Harness, body: unknown, init?: RequestInit) =>
  Effect.flatMap(post(server, body, init), (response) =>
    Effect.promise(async () => {
      assert.strictEqual(response.status, 200)
      return readResponse(await response.json())
    }))

const stream = (server: Harness, body: Readonly<Record<string, unknown>>) =>
  Effect.flatMap(post(server, { ...body, stream: true }), (response) =>
    Effect.promise(async () => {
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
      return checkResponsesStream(await response.text())
    }))

const promptOf = (server: Harness, index: number) => textOf(server.engine.requests[index]!.tokens)

describe("one body", () => {
  it.live("answers with a whole response object", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("Hello!"), cachedTokens: 3 }) } })
      const response = yield* post(server, { input: "hi", instructions: "be brief", metadata: { a: "b" }, user: "u", who: 1 })
      assert.strictEqual(response.headers.get("content-type"), "application/json")
      assert.strictEqual(response.headers.get("x-mashbox-ignored"), "user, who")
      const body = yield* Effect.promise(async () => readResponse(await response.json()))
      assert.match(body.id, /^resp_[0-9a-f]{32}$/)
      assert.strictEqual(promptOf(server, 0), "system:be brief|user:hi|")
      const { created_at, id, output, ...rest } = body
      assert.isTrue(Math.abs(created_at - Date.now() / 1000) < 60)
      assert.deepStrictEqual(output, [{
        id: `msg_${id.slice(5)}00`,
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "Hello!", annotations: [], logprobs: [] }]
      }])
      const input = "system:be brief|user:hi|".length
      assert.deepStrictEqual(rest, {
        object: "response",
        status: "completed",
        background: false,
        error: null,
        incomplete_details: null,
        instructions: "be brief",
        max_output_tokens: null,
        model: "demo/model",
        parallel_tool_calls: true,
        previous_response_id: null,
        reasoning: { effort: null, summary: null },
        service_tier: "default",
        store: true,
        temperature: 0,
        text: { format: { type: "text" } },
        tool_choice: "auto",
        tools: [],
        top_p: 1,
        truncation: "disabled",
        usage: {
          input_tokens: input,
          input_tokens_details: { cached_tokens: 3 },
          output_tokens: 6,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: input + 6,
          timings: { agent_turn_cache_hit: false, cached_prefix_tokens: 3, prefilled_tokens: input - 3 }
        },
        user: "u",
        metadata: { a: "b" }
      })
    }))

  it.live("takes the warm-up request of Codex: empty input and one token", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello") })
      const body = yield* create(server, { model: "demo/model", input: "", max_output_tokens: 1 })
      assert.strictEqual(body.status, "incomplete")
      assert.deepStrictEqual(body.incomplete_details, { reason: "max_output_tokens" })
      assert.strictEqual(body.output[0]?.status, "incomplete")
      assert.strictEqual(body.usage?.output_tokens, 1)
    }))

  it.live("clamps max_output_tokens to the room left", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...says("ok"), model: { contextLength: 1000 } } })
      yield* create(server, { input: "hi", max_output_tokens: 1_000_000 })
      assert.strictEqual(server.engine.requests[0]!.maxTokens, 1000 - "user:hi|".length)
    }))

  it.live("refuses in OpenAI's shape, naming the field", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok") })
      const cases: ReadonlyArray<readonly [unknown, number, string | null]> = [
        [{}, 400, "input"],
        [{ input: 5 }, 400, "input"],
        [{ input: [] }, 400, "input"],
        [{ input: "x", model: "other" }, 404, "model"],
        [{ input: "x", previous_response_id: "resp_none" }, 404, "previous_response_id"],
        [{ input: "x", background: true }, 400, "background"],
        [{ input: "x", max_output_tokens: 0 }, 400, "max_output_tokens"]
      ]
      for (const [body, status, param] of cases) {
        const response = yield* post(server, body)
        assert.strictEqual(response.status, status, JSON.stringify(body))
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, param, JSON.stringify(body))
      }
      assert.strictEqual(server.engine.requests.length, 0)
    }))
})

describe("stream", () => {
  it.live("text", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello, Wörld! 🌍 \"quoted\"\n") })
      const { events, response } = yield* stream(server, { input: "hi" })
      const [message] = response.output
      assert.strictEqual(message?.type === "message" ? message.content[0]?.text : "", "Hello, Wörld! 🌍 \"quoted\"\n")
      assert.deepStrictEqual([...new Set(events.map((event) => event.type))], [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed"
      ])
    }))

  it.live("reasoning comes as content, or as the summary where one is asked for, and goes back exactly", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("hm, \"two\"\n\nlines</think>\n\nHello") })
      const plain = yield* stream(server, { input: "hi", reasoning: { effort: "high" } })
      const reasoningTokens = "hm, \"two\"\n\nlines</think>".length
      assert.deepStrictEqual(plain.response.usage?.output_tokens_details, { reasoning_tokens: reasoningTokens })
      assert.deepStrictEqual(plain.response.output[0], {
        id: `rs_${plain.response.id.slice(5)}00`,
        type: "reasoning",
        status: "completed",
        summary: [],
        content: [{ type: "reasoning_text", text: "hm, \"two\"\n\nlines" }]
      })
      const summary = yield* stream(server, {
        input: "hi",
        reasoning: { effort: "high", summary: "auto" },
        include: ["reasoning.encrypted_content"]
      })
      const [item] = summary.response.output
      assert.ok(item?.type === "reasoning")
      assert.deepStrictEqual(item.summary, [{ type: "summary_text", text: "hm, \"two\"\n\nlines" }])
      assert.isUndefined(item.content)
      assert.isString(item.encrypted_content)
      assert.strictEqual(summary.response.output.length, 2)
    }))

  it.live("ends with response.incomplete at the limit", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello") })
      const { response } = yield* stream(server, { input: "hi", max_output_tokens: 2 })
      assert.strictEqual(response.status, "incomplete")
      assert.strictEqual(response.output[0]?.status, "incomplete")
    }))

  it.live("repeats response.in_progress while nothing comes", () =>
    Effect.gen(function*() {
      const held = yield* Deferred.make<void>()
      const answer: ScriptedAnswer = { tokens: tokensOf("Hi"), delay: Deferred.await(held) }
      const server = yield* harness({ script: { answer: () => answer }, limits: { headMs: 1, keepAliveMs: 20 } })
      const response = yield* post(server, { input: "hi", stream: true })
      const alive = (text: string) => text.match(/^event: response\.in_progress$/gm)?.length ?? 0
      const { rest, text } = yield* Effect.promise(() => readUntil(response, (text) => alive(text) > 2))
      yield* Deferred.succeed(held, undefined)
      const { response: answered } = checkResponsesStream(text + (yield* Effect.promise(rest)))
      assert.strictEqual(answered.status, "completed")
    }))

  it.live("a lost engine after output is response.failed with server_error", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: () => ({
            tokens: (function*() {
              yield* tokensOf("Hello")
              while (true) yield "x".charCodeAt(0)
            })()
          })
        },
        limits: { headMs: 1 }
      })
      const response = yield* post(server, { input: "hi", stream: true })
      const reader = response.body!.getReader()
      const decoder = new TextDecoder()
      let text = ""
      while (!text.includes("output_text.delta")) {
        text += decoder.decode((yield* Effect.promise(() => reader.read())).value, { stream: true })
      }
      yield* server.engine.loseWorker
      while (true) {
        const { done, value } = yield* Effect.promise(() => reader.read())
        if (done) break
        text += decoder.decode(value, { stream: true })
      }
      const { response: failed } = checkResponsesStream(text)
      assert.strictEqual(failed.status, "failed")
      assert.include(failed.error?.message ?? "", "Server error")
    }))

  it.live("an early failure is a status", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...says("ok"), model: { contextLength: 1000 } } })
      const response = yield* post(server, { input: "x".repeat(1000), stream: true })
      assert.strictEqual(response.status, 400)
      assert.strictEqual((yield* Effect.promise(() => errorOf(response))).code, "context_length_exceeded")
    }))
})

describe("stored responses", () => {
  it.live("are got, listed, continued and deleted", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello") })
      const first = yield* create(server, { input: "one", instructions: "rules" })
      const got = yield* send(server, `/v1/responses/${first.id}`)
      assert.deepStrictEqual(yield* Effect.promise(async () => readResponse(await got.json())), first)
      const second = yield* create(server, { input: "two", previous_response_id: first.id })
      assert.strictEqual(promptOf(server, 1), "user:one|assistant:Hello|user:two|")
      assert.strictEqual(second.previous_response_id, first.id)
      const listed = yield* send(server, `/v1/responses/${second.id}/input_items?order=asc&limit=2`)
      const list = yield* Effect.promise(async () => Schema.decodeUnknownPromise(InputItemList)(await listed.json()))
      assert.isTrue(list.has_more)
      assert.deepStrictEqual(list.data.map((item) => item["role"]), ["user", "assistant"])
      const rest = yield* send(server, `/v1/responses/${second.id}/input_items?order=asc&after=${list.last_id}`)
      const more = yield* Effect.promise(async () => Schema.decodeUnknownPromise(InputItemList)(await rest.json()))
      assert.deepStrictEqual(more.data.map((item) => item["content"]), [[{ type: "input_text", text: "two" }]])
      assert.isFalse(more.has_more)
      const cancelled = yield* send(server, `/v1/responses/${first.id}/cancel`, { method: "POST" })
      assert.strictEqual(cancelled.status, 400)
      const deleted = yield* send(server, `/v1/responses/${first.id}`, { method: "DELETE" })
      assert.deepStrictEqual(yield* Effect.promise(async () => Schema.decodeUnknownPromise(ResponseDeleted)(await deleted.json())), {
        id: first.id,
        object: "response",
        deleted: true
      })
      for (
        const [method, path] of [
          ["GET", `/v1/responses/${first.id}`],
          ["DELETE", `/v1/responses/${first.id}`],
          ["GET", `/v1/responses/${first.id}/input_items`],
          ["POST", `/v1/responses/${first.id}/cancel`]
        ] as const
      ) {
        const response = yield* send(server, path, { method })
        assert.strictEqual(response.status, 404, `${method} ${path}`)
        yield* Effect.promise(() => errorOf(response))
      }
    }))

  it.live("an item_reference finds an item of an answer, and one that finds none is left out", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("hm</think>Hello") })
      const first = yield* create(server, { input: "one", reasoning: { effort: "high" } })
      const [reasoning, message] = first.output
      const response = yield* post(server, {
        input: [
          { role: "user", content: "one" },
          { type: "item_reference", id: reasoning?.id },
          { type: "item_reference", id: message?.id },
          { type: "item_reference", id: "msg_unknown" },
          { role: "user", content: "two" }
        ]
      })
      assert.strictEqual(response.headers.get("x-mashbox-ignored"), "input.3")
      assert.strictEqual(promptOf(server, 1), "user:one|assistant:Hello|user:two|")
    }))

  it.live("outlive the server where there is a file for them", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "mashbox-responses-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const settings = { responsesDb: join(folder, "responses.db") }
      const first = yield* harness({ script: says("Hello"), settings })
      const { id } = yield* create(first, { input: "one" })
      yield* first.close
      const second = yield* harness({ script: says("again"), settings })
      yield* create(second, { input: "two", previous_response_id: id })
      assert.strictEqual(promptOf(second, 0), "user:one|assistant:Hello|user:two|")
    }))

  it.live("are out of reach for another tenant", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "mashbox-keys-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const apiKeyFile = join(folder, "keys")
      writeFileSync(apiKeyFile, "anna:key-of-anna\nbob:key-of-bob\n", { mode: 0o600 })
      const server = yield* harness({ script: says("secret"), settings: { apiKeyFile } })
      const as = (name: string): RequestInit => ({ headers: { authorization: `Bearer key-of-${name}` } })
      const { id, output } = yield* create(server, { input: "one" }, as("anna"))
      assert.strictEqual((yield* send(server, `/v1/responses/${id}`, as("anna"))).status, 200)
      for (const method of ["GET", "DELETE"]) {
        assert.strictEqual((yield* send(server, `/v1/responses/${id}`, { ...as("bob"), method })).status, 404)
      }
      assert.strictEqual((yield* send(server, `/v1/responses/${id}/input_items`, as("bob"))).status, 404)
      assert.strictEqual((yield* post(server, { input: "x", previous_response_id: id }, as("bob"))).status, 404)
      const reference = { input: [{ type: "item_reference", id: output[0]?.id }, { role: "user", content: "x" }] }
      yield* create(server, reference, as("bob"))
      assert.strictEqual(promptOf(server, 1), "user:x|")
      assert.strictEqual((yield* send(server, `/v1/responses/${id}`)).status, 401)
    }))

  it.live("store: false keeps nothing", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello") })
      const first = yield* create(server, { input: "one", store: false })
      assert.strictEqual((yield* send(server, `/v1/responses/${first.id}`)).status, 404)
    }))

  it.live("a streamed response is stored as it was sent", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello") })
      const { response } = yield* stream(server, { input: "one" })
      const got = yield* send(server, `/v1/responses/${response.id}`)
      assert.deepStrictEqual(yield* Effect.promise(async () => readResponse(await got.json())), response)
    }))

  it.live("refuses bad queries by name", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("Hello") })
      const { id } = yield* create(server, { input: "one" })
      const cases = [
        ["/input_items?limit=0", "limit"],
        ["/input_items?limit=101", "limit"],
        ["/input_items?limit=x", "limit"],
        ["/input_items?order=up", "order"],
        ["/input_items?after=msg_none", "after"],
        ["?stream=true", "stream"]
      ] as const
      for (const [path, param] of cases) {
        const response = yield* send(server, `/v1/responses/${id}${path}`)
        assert.strictEqual(response.status, 400, path)
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, param)
      }
    }))
})

describe("beside generation", () => {
  it.live("counts input tokens without the engine", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...says("x"), load: "never" } })
      const response = yield* send(server, "/v1/responses/input_tokens", { method: "POST", body: JSON.stringify({ input: "hi" }) })
      assert.strictEqual(response.status, 200)
      assert.deepStrictEqual(yield* Effect.promise(async () => Schema.decodeUnknownPromise(InputTokens)(await response.json())), {
        object: "response.input_tokens",
        input_tokens: "user:hi|".length
      })
      const bad = yield* send(server, "/v1/responses/input_tokens", { method: "POST", body: JSON.stringify({ input: [{ role: "x" }] }) })
      assert.strictEqual(bad.status, 400)
    }))

  it.live("compact says that it is not supported", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("x") })
      const response = yield* send(server, "/v1/responses/compact", { method: "POST", body: JSON.stringify({ input: "hi" }) })
      assert.strictEqual(response.status, 400)
      assert.strictEqual((yield* Effect.promise(() => errorOf(response))).code, "unsupported_parameter")
    }))

  it.live("GET is 405, and 426 where a WebSocket is asked for", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("x") })
      const plain = yield* send(server, "/v1/responses")
      assert.strictEqual(plain.status, 405)
      assert.strictEqual(plain.headers.get("allow"), "POST")
      const answer = yield* Effect.promise(() =>
        new Promise<{ readonly status: number | undefined; readonly body: string }>((resolve, reject) => {
          const request = httpRequest(`${server.url}/v1/responses`, {
            headers: {
              connection: "Upgrade",
              upgrade: "websocket",
              "sec-websocket-version": "13",
              "sec-websocket-key": "OVYLS9eMvOqCmzkq4Nw6Kw=="
            }
          })
          request.on("upgrade", () => reject(new Error("upgraded")))
          request.on("error", reject)
          request.on("response", (response) => {
            let body = ""
            response.on("data", (chunk) => body += chunk)
            response.on("end", () => resolve({ status: response.statusCode, body }))
          })
          request.end()
        })
      )
      assert.strictEqual(answer.status, 426)
      assert.strictEqual(JSON.parse(answer.body).error.code, "websocket_unsupported")
    }))

  it.live("a client that leaves frees its slot", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: () => ({
            tokens: (function*() {
              while (true) yield "x".charCodeAt(0)
            })()
          })
        }
      })
      const abort = leaving()
      const response = yield* post(server, { input: "hi", stream: true }, { signal: abort.signal })
      yield* Effect.promise(() => response.body!.getReader().read())
      abort.abort()
      yield* Effect.promise(() => eventually(() => server.engine.running() === 0))
    }))
})
