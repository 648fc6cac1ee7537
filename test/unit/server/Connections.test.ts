import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { once } from "node:events"
import { Agent, type IncomingMessage, request } from "node:http"
import { connect } from "node:net"
import { eventually, harness, tokensOf, user } from "./harness.ts"

const script = { answer: () => ({ tokens: tokensOf("ok") }) }

/** Sends bytes as they are and reads until the server closes. */
const exchange = (url: string, bytes: string) =>
  Effect.promise(async () => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    let received = ""
    socket.on("data", (chunk) => received += chunk.toString("latin1"))
    socket.on("error", () => {})
    socket.write(bytes)
    await once(socket, "close")
    return received
  })

describe("bytes that are no request", () => {
  it.live("get one JSON error and the connection closed", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const host = "host: localhost\r\n"
      const cases = [
        ["garbage\r\n\r\n", 400],
        [`GET / HTTP/1.1\r\n${host}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400],
        [`POST / HTTP/1.1\r\n${host}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`, 400],
        ["GET / HTTP/1.1\r\n\r\n", 400],
        [`GET / HTTP/1.1\r\n${host}x: ${"a".repeat(20_000)}\r\n\r\n`, 431]
      ] as const
      for (const [bytes, status] of cases) {
        const received = yield* exchange(server.url, bytes)
        assert.match(received, new RegExp(`^HTTP/1.1 ${status} `), bytes.slice(0, 60))
        assert.strictEqual(received.split("HTTP/1.1").length, 2, bytes.slice(0, 60))
      }
      assert.strictEqual(server.engine.requests.length, 0)
      assert.strictEqual((yield* Effect.promise(() => fetch(`${server.url}/health`))).status, 200)
    }))
})

describe("a client of HTTP/1.0", () => {
  it.live("gets its stream without chunk framing, up to the end of the connection", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("0123456789"), interval: "1 millis" }) } })
      const body = JSON.stringify({ messages: user("hi"), stream: true })
      const head = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
      const received = yield* exchange(server.url, `POST /v1/chat/completions HTTP/1.0\r\n${head}\r\n\r\n${body}`)
      const [, events = ""] = received.split("\r\n\r\n")
      assert.isTrue(events.startsWith("data: {"))
      assert.isTrue(events.endsWith("data: [DONE]\n\n"))
      assert.notInclude(events, "\r")
      assert.strictEqual([...events.matchAll(/"content":"(\d+)"/g)].map(([, text]) => text).join(""), "0123456789")
    }))
})

describe("a stream whose first token is late", () => {
  it.live("begins with its head in every dialect, also in one that says nothing before the first token", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: tokensOf("0123456789"), delay: "60 millis", interval: "1 millis" }) },
        limits: { headMs: 1 }
      })
      const bodies = {
        "/v1/chat/completions": { messages: user("hi") },
        "/v1/completions": { prompt: "hi" },
        "/v1/responses": { input: "hi" },
        "/v1/messages": { model: "demo/model", max_tokens: 50, messages: user("hi") }
      }
      for (const [path, fields] of Object.entries(bodies)) {
        const body = JSON.stringify({ ...fields, stream: true })
        const head = `host: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
        const received = yield* exchange(server.url, `POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${body}`)
        assert.match(received, /^HTTP\/1\.1 200 OK\r\n/, path)
        assert.strictEqual(received.split("HTTP/1.1").length, 2, path)
        assert.isTrue(received.endsWith("\r\n0\r\n\r\n"), path)
      }
    }))
})

describe("closing", () => {
  it.live("lets running answers finish, refuses new requests, and ends", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("0123456789"), interval: "20 millis" }) } })
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const send = (body: object): Promise<IncomingMessage> =>
        new Promise((resolve, reject) => {
          const sent = request(`${server.url}/v1/chat/completions`, {
            method: "POST",
            agent,
            headers: { "content-type": "application/json" }
          }, resolve)
          sent.on("error", reject)
          sent.end(JSON.stringify(body))
        })
      const read = async (response: IncomingMessage) => {
        let text = ""
        for await (const chunk of response) text += chunk
        return text
      }
      const idle = yield* Effect.promise(() => send({ messages: user("hi") }).then(read))
      assert.include(idle, "0123456789")

      const streaming = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      const closing = yield* Effect.forkChild(server.close, { startImmediately: true })
      const late = yield* Effect.promise(() => server.post({ messages: user("hi") }).then(() => "answered", () => "refused"))
      assert.strictEqual(late, "refused")
      const body = yield* Effect.promise(() => streaming.text())
      assert.include(body, "[DONE]")
      assert.strictEqual(body.match(/"content":"\d"/g)?.length, 10)
      yield* Fiber.join(closing)
      agent.destroy()
      yield* Effect.promise(() => eventually(() => server.log.length === 2))
      assert.deepStrictEqual(server.log.map((line) => JSON.parse(line).outcome), ["ok", "ok"])
    }))

  it.live("does not wait for connections without a request", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const { hostname, port } = new URL(server.url)
      const silent = connect(Number(port), hostname)
      const half = connect(Number(port), hostname)
      yield* Effect.promise(() => Promise.all([once(silent, "connect"), once(half, "connect")]))
      half.write("GET /health HT")
      yield* Effect.promise(() => fetch(`${server.url}/health`).then((response) => response.text()))
      const closed = Promise.all([once(silent.resume(), "close"), once(half.resume(), "close")])
      yield* server.close
      yield* Effect.promise(() => closed)
    }))

  it.live("cuts answers that outlive the drain", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: [], fault: { _tag: "Hang", afterTokens: 0 } }) },
        limits: { drainMs: 20, headMs: 1 }
      })
      const streaming = yield* Effect.promise(() => server.post({ messages: user("hi"), stream: true }))
      yield* server.close
      const end = yield* Effect.promise(() => streaming.text().then(() => "complete", () => "cut"))
      assert.strictEqual(end, "cut")
      assert.strictEqual(JSON.parse(server.log[0]!).outcome, "server_closed")
    }))
})
