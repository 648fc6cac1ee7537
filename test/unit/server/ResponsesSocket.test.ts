import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { request as httpRequest } from "node:http"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { ResponseObject } from "../../../schema/openai/Responses.ts"
import type { SocketEvent } from "../../../schema/openai/ResponsesSocket.ts"
import type { ScriptedAnswer } from "../../../src/engine/ScriptedScheduler.ts"
import { checkResponseEvents, checkResponsesStream } from "../../support/ResponsesStreamChecker.ts"
import { SocketClient } from "../../support/SocketClient.ts"
import { eventually, type Harness, harness, type HarnessOptions, textOf, tokensOf } from "./harness.ts"

const says = (...texts: ReadonlyArray<string>): HarnessOptions => ({
  script: { answer: (_request, index) => ({ tokens: tokensOf(texts[index] ?? "") }), model: { contextLength: 4096 } }
})

const endless: ScriptedAnswer = { tokens: Array.from({ length: 100_000 }, () => 120), interval: "1 millis" }

const on = (options: HarnessOptions): HarnessOptions => ({ ...options, settings: { websocket: true, ...options.settings } })

const using = (options: HarnessOptions, use: (client: SocketClient, server: Harness) => Promise<void>, headers?: Record<string, string>) =>
  Effect.gen(function*() {
    const server = yield* harness(on(options))
    const client = yield* Effect.promise(() => SocketClient.open(server.url, headers))
    yield* Effect.promise(() => use(client, server))
    yield* Effect.promise(() => client.close())
  })

const errorOf = (events: ReadonlyArray<SocketEvent>) => {
  const event = events.at(-1)
  if (event?.type !== "error" || !("error" in event)) throw new Error(`no error: ${JSON.stringify(event)}`)
  return event
}

const responseOf = (events: ReadonlyArray<SocketEvent>): ResponseObject => checkResponseEvents(events).response

const lines = (server: Harness) => server.log.map((line) => JSON.parse(line))

/** An upgrade by hand: its status, its headers and its body. */
const upgrade = (server: Harness, headers: Readonly<Record<string, string>>) =>
  Effect.promise(() =>
    new Promise<{ readonly status: number | undefined; readonly headers: Readonly<Record<string, unknown>>; readonly body: string }>(
      (resolve, reject) => {
        const request = httpRequest(`${server.url}/v1/responses`, {
          headers: {
            connection: "Upgrade",
            upgrade: "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "OVYLS9eMvOqCmzkq4Nw6Kw==",
            ...headers
          }
        })
        request.on("upgrade", (response, socket) => {
          socket.destroy()
          resolve({ status: response.statusCode, headers: response.headers, body: "" })
        })
        request.on("error", reject)
        request.on("response", (response) => {
          let body = ""
          response.on("data", (chunk) => body += chunk)
          response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }))
        })
        request.end()
      }
    )
  )

const handshake =
  "GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" +
  "sec-websocket-key: OVYLS9eMvOqCmzkq4Nw6Kw==\r\n\r\n"

/** A short text message of a client, masked with zeros. */
const maskedText = (text: string) => Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

const call = "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"

const weather = { type: "function", name: "get_weather", strict: false, parameters: { type: "object" } }

/** Events without what differs between two answers to one request: ids, times, and where deltas were cut. */
const comparable = (events: ReadonlyArray<object>): ReadonlyArray<unknown> => {
  const merged: Array<Record<string, unknown>> = []
  for (const event of events) {
    const { headers: _, sequence_number: __, ...fields }: Record<string, unknown> = { ...event }
    const last = merged.at(-1)
    if (last !== undefined && typeof fields["delta"] === "string" && last["type"] === fields["type"]) {
      last["delta"] = String(last["delta"]) + fields["delta"]
    } else merged.push(fields)
  }
  const text = JSON.stringify(merged)
  const id = /"resp_([0-9a-f]+)"/.exec(text)?.[1] ?? "none"
  return JSON.parse(
    text.replaceAll(id, "ID").replaceAll(/"created_at":\d+/g, "\"created_at\":0").replaceAll(/"call_id":"[^"]+"/g, "\"call_id\":\"C\"")
      .replaceAll(/"timings":\{[^}]*\}/g, "\"timings\":{}")
  )
}

describe("a connection", () => {
  it.live("answers with the events of an event stream", () =>
    Effect.gen(function*() {
      const texts = ["Hello!", `hm\nso</think>\n\n${call}`, "Hello!"]
      const bodies = [
        { input: "hi", instructions: "be brief", metadata: { a: "b" } },
        { input: "weather?", tools: [weather], reasoning: { effort: "high", summary: "auto" }, include: ["reasoning.encrypted_content"] },
        { input: "hi", max_output_tokens: 3, top_logprobs: 1 }
      ]
      const server = yield* harness(on(says(...texts.flatMap((text) => [text, text]))))
      const client = yield* Effect.promise(() => SocketClient.open(server.url))
      for (const body of bodies) {
        const streamed = yield* Effect.promise(async () => {
          const response = await fetch(`${server.url}/v1/responses`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ ...body, stream: true })
          })
          return checkResponsesStream(await response.text()).events
        })
        client.send({ ...body, stream: true })
        const events = yield* Effect.promise(() => client.answer())
        checkResponseEvents(events)
        assert.deepStrictEqual(comparable(events), comparable(streamed))
      }
      yield* Effect.promise(() => client.close())
    }))

  it.live("tells what headers would have told, and logs each response by itself", () =>
    using(says("one", "two"), async (client, server) => {
      client.send({ input: "hi", service_tier: "auto", nonsense: 1 })
      const [created, progress] = await client.answer()
      assert.ok(created?.type === "response.created" && "response" in created)
      assert.match(created.headers?.["x-request-id"] ?? "", /^req_/)
      assert.strictEqual(created.headers?.["x-mashbox-ignored"], "service_tier, nonsense")
      assert.notProperty(progress, "headers")
      client.send({ input: "again" })
      await client.answer()
      await client.close()
      await eventually(() => server.log.length === 3)
      const [first, second, connection] = lines(server)
      assert.deepInclude(first, { outcome: "ok", status: 200, stream: true, completionTokens: 3, route: "/v1/responses" })
      assert.strictEqual(first.request, created.headers?.["x-request-id"])
      assert.notStrictEqual(first.request, second.request)
      assert.deepStrictEqual([first.connection, second.connection], [connection.request, connection.request])
      assert.deepInclude(connection, { outcome: "ok", status: 101 })
    }))

  it.live("goes on from its newest response, also where that is not stored, and from no other's", () =>
    using(says("one", "two", "three"), async (client, server) => {
      client.send({ input: "first", store: false })
      const first = responseOf(await client.answer())
      client.send({ input: "second", store: false, previous_response_id: first.id })
      const second = responseOf(await client.answer())
      assert.strictEqual(textOf(server.engine.requests[1]!.tokens), "user:first|assistant:one|user:second|")
      assert.strictEqual(second.previous_response_id, first.id)

      client.send({ input: "again", store: false, previous_response_id: first.id })
      assert.deepInclude(errorOf(await client.answer()), { status: 400 })
      const other = await SocketClient.open(server.url)
      other.send({ input: "mine?", previous_response_id: second.id })
      const { error, status } = errorOf(await other.answer())
      assert.deepInclude(error, { code: "previous_response_not_found", param: "previous_response_id", type: "invalid_request_error" })
      assert.strictEqual(status, 400)
      await other.close()
      assert.strictEqual((await fetch(`${server.url}/v1/responses/${second.id}`)).status, 404)

      client.send({ input: [{ type: "item_reference", id: second.output[0]!.id }], store: false })
      const third = responseOf(await client.answer())
      assert.strictEqual(third.output.length, 1)
      await client.close()
      const later = await SocketClient.open(server.url)
      later.send({ input: "still?", previous_response_id: third.id })
      assert.strictEqual(errorOf(await later.answer()).error.code, "previous_response_not_found")
      await later.close()
    }))

  it.live("stores what may be stored", () =>
    using(says("one", "two"), async (client, server) => {
      client.send({ input: "first" })
      const first = responseOf(await client.answer())
      const stored = await fetch(`${server.url}/v1/responses/${first.id}`)
      assert.deepStrictEqual(await stored.json(), first)
    }))

  it.live("prepares a response without an answer, which a later one goes on from", () =>
    using(says("two"), async (client, server) => {
      client.send({ input: "first", instructions: "be brief", store: false, generate: false })
      const events = await client.answer()
      assert.deepStrictEqual(events.map(({ type }) => type), ["response.created", "response.in_progress", "response.completed"])
      const first = responseOf(events)
      assert.deepStrictEqual(first.output, [])
      assert.deepInclude(first.usage, { input_tokens: "system:be brief|user:first|".length, output_tokens: 0 })
      assert.strictEqual(server.engine.requests.length, 0)
      client.send({ input: "second", store: false, previous_response_id: first.id })
      responseOf(await client.answer())
      assert.strictEqual(textOf(server.engine.requests[0]!.tokens), "user:first|user:second|")
      client.send({ input: "x".repeat(5_000), generate: false })
      assert.strictEqual(errorOf(await client.answer()).error.code, "context_length_exceeded")
      await eventually(() => server.admission !== undefined && server.engine.running() === 0)
    }))

  it.live("computes the prompt's state where the next request can go on from it", () =>
    using({ ...says("two"), prefixCache: true }, async (client, server) => {
      client.send({ input: "first", generate: false })
      const { output, usage } = responseOf(await client.answer())
      assert.deepStrictEqual(output, [])
      assert.deepInclude(usage, { input_tokens: "user:first|".length, output_tokens: 0 })
      assert.deepStrictEqual(server.engine.requests.map(({ maxTokens }) => maxTokens), [1])
    }))
})

describe("lanes", () => {
  it.live("answer their own requests in order, and each other's at the same time", () =>
    using({
      script: {
        answer: (request) => {
          const prompt = textOf(request.tokens)
          return prompt.includes("slow") ? endless : { tokens: tokensOf(prompt) }
        }
      }
    }, async (client, server) => {
      client.send({ input: "slow", stream_id: "a" })
      while ((await client.next()).type !== "response.output_text.delta") { /* until it runs */ }
      client.send({ input: "after it", stream_id: "a" })
      client.send({ input: "beside it", stream_id: "b" })
      client.send({ input: "and without a name" })
      const ended: Array<string | undefined> = []
      while (ended.length < 2) {
        const event = await client.next()
        if (event.type === "response.completed") ended.push(event.stream_id)
      }
      assert.deepStrictEqual(ended.toSorted(), ["b", undefined])
      assert.strictEqual(server.engine.requests.length, 3)
      assert.isTrue(client.received.every((event) => ["a", "b", undefined].includes(event.stream_id)))
    }))

  it.live("wait for the response before", () =>
    using(says("one", "two", "three"), async (client, server) => {
      for (const input of ["1", "2", "3"]) client.send({ input })
      const texts: Array<string> = []
      for (let index = 0; index < 3; index++) {
        const [item] = responseOf(await client.answer()).output
        texts.push(item?.type === "message" ? item.content[0]!.text : "")
      }
      assert.deepStrictEqual(texts, ["one", "two", "three"])
      assert.deepStrictEqual(server.engine.requests.map(({ tokens }) => textOf(tokens)), ["user:1|", "user:2|", "user:3|"])
    }))

  it.live("are bounded, and so is what waits in them", () =>
    using({ script: { answer: () => endless } }, async (client, server) => {
      client.send({ input: "hi" })
      while ((await client.next()).type !== "response.output_text.delta") { /* until it runs */ }
      const refusals: Array<SocketEvent> = []
      const collect = async (count: number) => {
        while (refusals.length < count) {
          const event = await client.next()
          if (event.type === "error") refusals.push(event)
        }
      }
      for (let index = 0; index < 66; index++) client.send({ input: "hi" })
      await collect(3)
      assert.deepStrictEqual(refusals.map((event) => "error" in event && event.error.code), [
        "websocket_queue_full",
        "websocket_queue_full",
        "websocket_queue_full"
      ])
      client.send({ input: "x".repeat(60_000), stream_id: "b" })
      await collect(4)
      assert.strictEqual(server.engine.requests.length, 1)
      await client.close()
      const other = await SocketClient.open(server.url)
      for (let index = 0; index < 33; index++) other.send({ input: "hi", model: "unknown", stream_id: `s.${index}` })
      const seen: Array<unknown> = []
      for (let index = 0; index < 33; index++) {
        const event = errorOf([await other.next()])
        seen.push(event.error.code)
        if (event.error.code === "websocket_stream_limit_reached") assert.strictEqual(event.stream_id, "s.32")
      }
      assert.strictEqual(seen.filter((code) => code === "model_not_found").length, 32)
      await other.close()
    }))
})

describe("messages", () => {
  it.live("that are wrong get an error by their field, and the connection goes on", () =>
    using(says("Hello!"), async (client, server) => {
      const messages: ReadonlyArray<readonly [string | Record<string, unknown>, number, string | null, string | null]> = [
        ["no JSON", 400, null, null],
        ["", 400, null, null],
        ["[]", 400, null, null],
        ["null", 400, null, null],
        ["[".repeat(50_000), 400, null, null],
        ["{\"a\":".repeat(10_000) + "1" + "}".repeat(10_000), 400, null, null],
        [JSON.stringify({ input: "hi" }), 400, "type", null],
        [{ type: "response.cancel" }, 400, "type", null],
        [{ type: ["response.create"] }, 400, "type", null],
        [{ type: "response.steer", response_id: "resp_1", input: [] }, 400, "type", "unsupported_parameter"],
        [{ input: "hi", stream_id: "" }, 400, "stream_id", "invalid_stream_id"],
        [{ input: "hi", stream_id: "a b" }, 400, "stream_id", "invalid_stream_id"],
        [{ input: "hi", stream_id: 1 }, 400, "stream_id", "invalid_stream_id"],
        [{ input: "hi", generate: "no" }, 400, "generate", null],
        [{}, 400, "input", null],
        [{ input: "hi", temperature: "warm" }, 400, "temperature", null],
        [{ input: "hi", background: true }, 400, "background", "unsupported_parameter"],
        [{ input: "hi", model: "other" }, 404, "model", "model_not_found"],
        [{ input: "x".repeat(5_000) }, 400, "messages", "context_length_exceeded"],
        [{ input: "hi", previous_response_id: "resp_none" }, 400, "previous_response_id", "previous_response_not_found"]
      ]
      for (const [message, status, param, code] of messages) {
        client.send(message)
        const event = errorOf(await client.answer())
        const about = JSON.stringify(message).slice(0, 80)
        assert.deepStrictEqual([event.status, event.error.param, event.error.code], [status, param, code], about)
        assert.match(event.error.headers["x-request-id"] ?? "", /^req_/)
        assert.deepStrictEqual(event.headers, event.error.headers)
      }
      assert.strictEqual(server.engine.requests.length, 0)
      client.send({ input: "hi" })
      responseOf(await client.answer())
      assert.deepStrictEqual(lines(server).map(({ outcome }) => outcome).slice(0, messages.length), messages.map(() => "refused"))
    }))

  it.live("that only say that a response was dealt with get no answer", () =>
    using(says("one"), async (client, server) => {
      client.send({ type: "response.processed", response_id: "resp_1" })
      client.send({ input: "hi" })
      assert.strictEqual(responseOf(await client.answer()).status, "completed")
      assert.strictEqual(server.log.length, 1)
    }))

  it.live("that are large are read in slices, whole", () =>
    using({ ...says("ok"), limits: { bodyBytes: 8 * 1024 * 1024 } }, async (client) => {
      client.send({ input: "hi", metadata: { big: "é".repeat(2_000_000) } })
      const response = responseOf(await client.answer())
      assert.strictEqual(response.metadata["big"], "é".repeat(2_000_000))
      for (const deep of ["[".repeat(100_000), "{\"a\":".repeat(100_000), `{"input":${"[".repeat(100_000)}${"]".repeat(100_000)}}`]) {
        client.send(deep)
        assert.strictEqual(errorOf(await client.answer()).status, 400)
      }
    }))

  it.live("end the connection where it cannot go on", () =>
    Effect.gen(function*() {
      const server = yield* harness(on(says("Hello!")))
      const open = () => SocketClient.open(server.url)
      yield* Effect.promise(async () => {
        const binary = await open()
        binary.socket.send(Buffer.from(JSON.stringify({ type: "response.create", input: "hi" })))
        assert.strictEqual(await binary.closed, 1003)
        const large = await open()
        large.send("x".repeat(64 * 1024 + 1))
        assert.strictEqual(await large.closed, 1009)
        const fragmented = await open()
        for (let index = 0; index < 9; index++) fragmented.socket.send("x".repeat(8 * 1024), { fin: false })
        assert.strictEqual(await fragmented.closed, 1009)
        const invalid = await open()
        invalid.socket.send(Buffer.from([0xff, 0xfe]), { binary: false })
        assert.strictEqual(await invalid.closed, 1007)
      })
      yield* Effect.promise(() => eventually(() => server.log.length === 4))
      assert.deepStrictEqual(lines(server).map(({ error }) => error), [
        undefined,
        "WebSocketProtocol",
        "WebSocketProtocol",
        "WebSocketProtocol"
      ])
    }))

  it.live("in fragments are one message, and pings are answered between them", () =>
    using(says("Hello!"), async (client) => {
      const text = JSON.stringify({ type: "response.create", input: "hi" })
      client.socket.send(text.slice(0, 10), { fin: false })
      client.socket.ping("between")
      client.socket.send(text.slice(10, 12), { fin: false })
      client.socket.send(text.slice(12), { fin: true })
      const [data] = await once(client.socket, "pong")
      assert.strictEqual(String(data), "between")
      responseOf(await client.answer())
    }))

  it.live("that nobody reads the answers of are answered no further", () =>
    Effect.gen(function*() {
      const server = yield* harness(on({ ...says(), limits: { bodyBytes: 1 << 26, slowReaderMs: 60, keepAliveMs: 20 } }))
      const client = yield* Effect.promise(() => SocketClient.open(server.url))
      client.socket.pause()
      const sent = 200
      for (let index = 0; index < sent; index++) client.send({ input: "hi", generate: false, metadata: { big: "x".repeat(100_000) } })
      yield* Effect.promise(() => eventually(() => lines(server).some(({ status }) => status === 101)))
      assert.isBelow(lines(server).filter(({ outcome, status }) => outcome === "ok" && status === 200).length, 64)
      assert.deepInclude(lines(server).at(-1), { status: 101, outcome: "slow_reader" })
      client.socket.terminate()
    }))
})

describe("a refusal by what has changed meanwhile", () => {
  it.live("names a key that is no longer one", () =>
    Effect.gen(function*() {
      const folder = mkdtempSync(join(tmpdir(), "mashbox-socket-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const apiKeyFile = join(folder, "keys")
      writeFileSync(apiKeyFile, "team:sk-old\n")
      const server = yield* harness(on({ ...says("one"), settings: { apiKeyFile } }))
      const client = yield* Effect.promise(() => SocketClient.open(server.url, { authorization: "Bearer sk-old" }))
      client.send({ input: "hi" })
      responseOf(yield* Effect.promise(() => client.answer()))
      writeFileSync(apiKeyFile, "team:sk-another-key\n")
      client.send({ input: "hi" })
      const { error, status } = errorOf(yield* Effect.promise(() => client.answer()))
      assert.deepStrictEqual([status, error.code], [401, "invalid_api_key"])
      assert.deepInclude(lines(server).at(-1), { outcome: "refused", error: "Unauthenticated", status: 401 })
      yield* Effect.promise(() => client.close())
    }))

  it.live("says when to come back to a full queue", () =>
    using({
      script: { answer: () => endless, model: { slots: 1 } },
      settings: { slots: 1 },
      admission: { slots: 1, maxWaitingPerTenant: 0, maxWaiting: 1 }
    }, async (client, server) => {
      client.send({ input: "hi" })
      await eventually(() => server.engine.running() === 1)
      client.send({ input: "hi", stream_id: "b" })
      let event = await client.next()
      while (event.type !== "error") event = await client.next()
      const { error, headers, status, stream_id } = errorOf([event])
      assert.deepStrictEqual([status, error.code, stream_id], [429, "tenant_queue_full", "b"])
      assert.isAtLeast(Number(headers["retry-after"]), 1)
    }))
})

describe("a close in the middle of a response", () => {
  it.live("is answered with a close, after which nothing comes", () =>
    Effect.gen(function*() {
      const server = yield* harness(on({ script: { answer: () => ({ tokens: Array.from({ length: 1 << 20 }, () => 120) }) } }))
      const { hostname, port } = new URL(server.url)
      for (let round = 0; round < 5; round++) {
        const peer = connect(Number(port), hostname)
        peer.write(handshake)
        yield* Effect.promise(() => once(peer, "data"))
        let received = Buffer.alloc(0)
        peer.on("data", (chunk: Buffer) => received = Buffer.concat([received, chunk]))
        peer.write(maskedText(JSON.stringify({ type: "response.create", input: "hi" })))
        yield* Effect.promise(() => eventually(() => received.length > 20_000))
        peer.write(Buffer.from([0x88, 0x80 | 2, 0, 0, 0, 0, 0x03, 0xe8]))
        yield* Effect.promise(() => once(peer, "end"))
        const opcodes: Array<number> = []
        for (let at = 0; at < received.length;) {
          opcodes.push(received[at] ?? 0)
          const short = received[at + 1] ?? 0
          at += short < 126 ? 2 + short : 4 + received.readUInt16BE(at + 2)
        }
        assert.strictEqual(opcodes.indexOf(0x88), opcodes.length - 1)
        peer.destroy()
      }
      yield* Effect.promise(() => eventually(() => server.engine.running() === 0))
    }))
})

describe("a flood of pings", () => {
  it.live("that nobody reads the answers of ends its connection, and no other", () =>
    Effect.gen(function*() {
      const server = yield* harness(on(says("Hello!")))
      const { hostname, port } = new URL(server.url)
      const other = yield* Effect.promise(() => SocketClient.open(server.url))
      const flood = connect(Number(port), hostname)
      flood.write(handshake)
      yield* Effect.promise(() => once(flood, "data"))
      flood.pause()
      const pings = Buffer.alloc(131 * 500)
      for (let at = 0; at < pings.length; at += 131) pings.set([0x89, 0x80 | 125], at)
      const more = () => {
        while (!flood.destroyed && flood.write(pings)) { /* until it waits */ }
      }
      flood.on("drain", more)
      flood.on("error", () => {})
      const before = process.memoryUsage().rss
      more()
      other.send({ input: "hi" })
      responseOf(yield* Effect.promise(() => other.answer()))
      yield* Effect.promise(() => eventually(() => lines(server).some(({ status }) => status === 101)))
      assert.isBelow(process.memoryUsage().rss - before, 200e6)
      flood.destroy()
      yield* Effect.promise(() => other.close())
    }))
})

describe("a client that leaves", () => {
  for (
    const [how, leave] of [
      ["with a close", (client: SocketClient) => client.socket.close()],
      ["without a word", (client: SocketClient) => client.socket.terminate()]
    ] as const
  ) {
    it.live(`${how} frees the slots of every lane`, () =>
      Effect.gen(function*() {
        const server = yield* harness(on({ script: { answer: () => endless } }))
        const client = yield* Effect.promise(() => SocketClient.open(server.url))
        client.send({ input: "hi", stream_id: "a" })
        client.send({ input: "hi", stream_id: "b" })
        client.send({ input: "waits", stream_id: "b" })
        yield* Effect.promise(() => eventually(() => server.engine.running() === 2))
        leave(client)
        yield* Effect.promise(() => eventually(() => server.engine.running() === 0 && server.log.length === 3))
        assert.strictEqual(server.engine.cancelled.length, 2)
        assert.strictEqual(server.engine.requests.length, 2)
        assert.deepStrictEqual(lines(server).slice(0, 2).map(({ outcome, status }) => [outcome, status]), [
          ["client_left", 200],
          ["client_left", 200]
        ])
      }))
  }

  it.live("that does not read is cut off, and its slot is free", () =>
    Effect.gen(function*() {
      const server = yield* harness(on({
        script: { answer: () => ({ tokens: Array.from({ length: 1 << 20 }, () => 120) }), model: { contextLength: 1 << 22 } },
        decode: () => "x".repeat(4_096),
        limits: { slowReaderMs: 60, keepAliveMs: 20 }
      }))
      const client = yield* Effect.promise(() => SocketClient.open(server.url))
      client.send({ input: "hi" })
      client.socket.pause()
      yield* Effect.promise(() => eventually(() => server.log.length === 2))
      assert.deepStrictEqual(lines(server).map(({ outcome }) => outcome), ["slow_reader", "slow_reader"])
      assert.strictEqual(server.engine.running(), 0)
      client.socket.terminate()
    }))

  it.live("hears that the server works while there is no output", () =>
    Effect.gen(function*() {
      const held = yield* Deferred.make<void>()
      const script = { answer: () => ({ tokens: tokensOf("late"), delay: Deferred.await(held) }) }
      yield* using({ script, limits: { headMs: 1, keepAliveMs: 10 } }, async (client) => {
        client.send({ input: "hi" })
        await eventually(() => client.received.filter(({ type }) => type === "response.in_progress").length > 2)
        Deferred.doneUnsafe(held, Effect.void)
        responseOf(await client.answer())
      })
    }))
})

describe("the end of the server", () => {
  it.live("lets the running response finish, refuses what waits, and closes with 1001", () =>
    Effect.gen(function*() {
      const held = yield* Deferred.make<void>()
      const server = yield* harness(on({ script: { answer: () => ({ tokens: tokensOf("0123456789"), interval: Deferred.await(held) }) } }))
      const [busy, idle] = yield* Effect.promise(() => Promise.all([SocketClient.open(server.url), SocketClient.open(server.url)]))
      busy.send({ input: "hi" })
      yield* Effect.promise(() => eventually(() => server.engine.running() === 1))
      const closing = yield* Effect.forkChild(server.close, { startImmediately: true })
      assert.strictEqual(yield* Effect.promise(() => idle.closed), 1001)
      busy.send({ input: "too late" })
      busy.socket.ping("after it")
      yield* Effect.promise(() => once(busy.socket, "pong"))
      yield* Deferred.succeed(held, undefined)
      const response = responseOf(yield* Effect.promise(() => busy.answer()))
      assert.strictEqual(response.status, "completed")
      const { error, headers, status } = errorOf(yield* Effect.promise(() => busy.answer()))
      assert.deepStrictEqual([status, error.code, headers["retry-after"]], [503, "draining", "5"])
      assert.strictEqual(yield* Effect.promise(() => busy.closed), 1001)
      yield* Fiber.join(closing)
    }))

  it.live("does not come for a connection that has only its age", () =>
    using(
      { script: { answer: () => ({ tokens: tokensOf("0123456789"), delay: 500 }) }, limits: { socketMs: 500 } },
      async (client) => {
        client.send({ input: "hi" })
        responseOf(await client.answer())
        assert.strictEqual(errorOf(await client.answer()).error.code, "websocket_connection_limit_reached")
        assert.strictEqual(await client.closed, 1001)
      }
    ))

  it.live("is told to those who ask in the middle of an engine's fault", () =>
    using({
      script: { answer: () => ({ tokens: tokensOf("abcdef"), interval: "5 millis", fault: { _tag: "WorkerLost", afterTokens: 3 } }) }
    }, async (client) => {
      client.send({ input: "hi" })
      const events = await client.answer()
      assert.strictEqual(events.at(-1)?.type, "response.failed")
      checkResponseEvents(events)
    }))
})

describe("the upgrade", () => {
  it.live("is 426 where it is off, and says how it is turned on", () =>
    Effect.gen(function*() {
      const server = yield* harness(says("x"))
      const { body, status } = yield* upgrade(server, {})
      assert.strictEqual(status, 426)
      const { error } = JSON.parse(body)
      assert.strictEqual(error.code, "websocket_unsupported")
      assert.include(error.message, "--websocket")
    }))

  it.live("passes the guards of every request first", () =>
    Effect.gen(function*() {
      const server = yield* harness(on({ ...says("x"), settings: { apiKey: "sk", corsOrigins: ["https://app.example"] } }))
      const key = { authorization: "Bearer sk" }
      const cases: ReadonlyArray<readonly [Record<string, string>, number]> = [
        [key, 101],
        [{ "x-api-key": "sk" }, 101],
        [{ ...key, origin: "https://app.example" }, 101],
        [{ ...key, origin: "https://evil.example" }, 403],
        [{ ...key, origin: "null" }, 403],
        [{ ...key, host: "evil.example" }, 403],
        [{}, 401],
        [{ authorization: "Bearer wrong" }, 401],
        [{ ...key, "sec-websocket-version": "12" }, 426],
        [{ ...key, "sec-websocket-key": "short" }, 400],
        [{ ...key, upgrade: "h2c" }, 426]
      ]
      for (const [headers, status] of cases) {
        const answer = yield* upgrade(server, headers)
        assert.strictEqual(answer.status, status, JSON.stringify(headers))
        if (status !== 101) assert.isString(JSON.parse(answer.body).error.message)
      }
      yield* Effect.promise(() => eventually(() => server.log.length === cases.length))
      assert.deepStrictEqual(lines(server).map(({ status }) => status).toSorted(), cases.map(([, status]) => status).toSorted())
    }))

  it.live("that is refused holds up no shutdown", () =>
    Effect.gen(function*() {
      const server = yield* harness(says("x"))
      const { hostname, port } = new URL(server.url)
      const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
      socket.write(`GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`)
      yield* Effect.promise(() => once(socket, "data"))
      yield* server.close
      socket.destroy()
    }))
})
