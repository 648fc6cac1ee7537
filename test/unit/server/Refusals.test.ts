import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { once } from "node:events"
import { request } from "node:http"
import { connect } from "node:net"
import { AnthropicError } from "../../../schema/anthropic/Error.ts"
import { openApi } from "../../../schema/Api.ts"
import { ErrorBody } from "../../../schema/openai/Common.ts"
import { eventually, harness, leaving, limits, tokensOf, user } from "./harness.ts"

const script = { answer: () => ({ tokens: tokensOf("ok") }) }

interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: string
}

const send = (url: string, options: { readonly method: string; readonly headers?: Record<string, string>; readonly body?: string }) =>
  Effect.promise(() =>
    new Promise<RawResponse>((resolve, reject) => {
      const sent = request(url, { method: options.method, headers: options.headers ?? {}, agent: false }, (response) => {
        let body = ""
        response.on("data", (chunk) => body += chunk)
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
      })
      sent.on("error", reject)
      sent.end(options.body)
    })
  )

/** Sends bytes as they are and reads until the server closes. */
const exchange = (url: string, bytes: string): Effect.Effect<RawResponse> =>
  Effect.promise(async () => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    let received = ""
    socket.on("data", (chunk) => received += chunk.toString("latin1"))
    socket.on("error", () => {})
    socket.write(bytes)
    await once(socket, "close")
    const [head = "", body = ""] = received.split("\r\n\r\n")
    const [statusLine = "", ...lines] = head.split("\r\n")
    return {
      status: Number(statusLine.split(" ")[1]),
      headers: Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)])),
      body
    }
  })

const readOpenAi = Schema.decodeUnknownSync(ErrorBody)
const readAnthropic = Schema.decodeUnknownSync(AnthropicError)

/** Fails unless the body is an error in the words of the path's dialect; its type. */
const errorType = (path: string, { body, headers }: RawResponse): string => {
  const requestId = headers["x-request-id"]
  assert.match(String(requestId), /^req_[0-9a-f]{32}$/, path)
  assert.match(String(headers["content-type"]), /^application\/json/, path)
  if (!path.startsWith("/v1/messages")) return readOpenAi(JSON.parse(body)).error.type
  const error = readAnthropic(JSON.parse(body))
  assert.strictEqual(error.request_id, requestId)
  return error.error.type
}

const json = { "content-type": "application/json" }

/** A request that each generating route takes. */
const bodies: Readonly<Record<string, object>> = {
  "/v1/chat/completions": { messages: user("hi") },
  "/v1/completions": { prompt: "hi" },
  "/v1/responses": { input: "hi" },
  "/v1/messages": { model: "demo/model", max_tokens: 5, messages: user("hi") },
  "/v1/messages/count_tokens": { model: "demo/model", messages: user("hi") }
}
const posted = Object.keys(bodies)

describe("keys", () => {
  const open = new Set(["/", "/health", "/v1/health"])
  const operations = Object.entries(openApi().paths).flatMap(([path, methods]) =>
    Object.keys(methods).filter((method) => /^(get|post|put|patch|delete)$/.test(method)).map((method) =>
      [method.toUpperCase(), path] as const
    )
  )

  it.live("every operation of the document but health needs one, and the document says so", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { apiKey: "sk-right" } })
      assert.isAtLeast(operations.length, 10)
      for (const [method, path] of operations) {
        const url = server.url + path.replaceAll(/\{\w+\}/g, "x")
        const { security } = Object.entries(openApi().paths).find(([own]) => own === path)?.[1][method.toLowerCase() as "get"] ?? {}
        if (open.has(path)) {
          assert.strictEqual((yield* send(url, { method })).status, 200, path)
          assert.deepStrictEqual(security, [], path)
          continue
        }
        assert.notDeepEqual(security, [], path)
        for (const headers of [{}, { authorization: "Bearer sk-wrong" }, { "x-api-key": "sk-wrong" }, { authorization: "Basic c2s6" }]) {
          const response = yield* send(url, { method, headers: { ...json, ...headers }, ...(method === "POST" ? { body: "{}" } : {}) })
          assert.strictEqual(response.status, 401, `${method} ${path}`)
          assert.strictEqual(errorType(path, response), "authentication_error")
        }
        for (const headers of [{ authorization: "Bearer sk-right" }, { "x-api-key": "sk-right" }]) {
          const response = yield* send(url, { method, headers: { ...json, ...headers }, ...(method === "POST" ? { body: "{}" } : {}) })
          assert.notStrictEqual(response.status, 401, `${method} ${path}`)
        }
      }
      assert.strictEqual(server.engine.requests.length, 0)
    }))
})

describe("refusals in the words of each dialect", () => {
  const body = JSON.stringify(bodies["/v1/messages"])

  it.live("403, 404, 405, 413 and 415", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const large = JSON.stringify({ messages: user("x".repeat(limits.bodyBytes)) })
      for (const path of posted) {
        const url = server.url + path
        const refused = (options: Parameters<typeof send>[1], status: number, type: string) =>
          Effect.gen(function*() {
            const response = yield* send(url, options)
            assert.strictEqual(response.status, status, path)
            assert.strictEqual(errorType(path, response), type, path)
            return response
          })
        yield* refused({ method: "POST", headers: { ...json, host: "evil.example" }, body }, 403, "permission_error")
        yield* refused({ method: "POST", headers: { ...json, origin: "http://evil.example" }, body }, 403, "permission_error")
        yield* refused({ method: "POST", headers: { ...json, origin: "null" }, body }, 403, "permission_error")
        const wrongMethod = yield* refused({ method: "PATCH" }, 405, "invalid_request_error")
        assert.include(String(wrongMethod.headers["allow"]), "POST", path)
        yield* refused({ method: "POST", headers: { "content-type": "text/plain" }, body }, 415, "invalid_request_error")
        const type = path.startsWith("/v1/messages") ? "request_too_large" : "invalid_request_error"
        yield* refused({ method: "POST", headers: json, body: large }, 413, type)
      }
      for (const path of ["/v1/nothing", "/v1/messages/nothing", "/nothing"]) {
        const response = yield* send(server.url + path, { method: "POST", headers: json, body })
        assert.strictEqual(response.status, 404, path)
        assert.strictEqual(errorType(path, response), "not_found_error", path)
      }
      assert.strictEqual(server.engine.requests.length, 0)
    }))

  it.live("429 with the wait, and 503 or 529 while loading", () =>
    Effect.gen(function*() {
      const hang = { answer: () => ({ tokens: [], fault: { _tag: "Hang" as const, afterTokens: 0 } }) }
      const server = yield* harness({ script: hang, settings: { slots: 1 }, admission: { maxWaitingPerTenant: 0 } })
      const running = leaving()
      const first = fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers: json, body, signal: running.signal }).catch(
        () => {}
      )
      yield* Effect.promise(() => eventually(() => server.engine.running() === 1))
      const loading = yield* harness({ script: { ...script, load: "never" } })
      for (const path of posted) {
        if (path !== "/v1/messages/count_tokens") {
          const response = yield* send(server.url + path, { method: "POST", headers: json, body: JSON.stringify(bodies[path]) })
          assert.strictEqual(response.status, 429, path)
          errorType(path, response)
          assert.isAtLeast(Number(response.headers["retry-after"]), 1)
          assert.isAtLeast(Number(response.headers["retry-after-ms"]), 100)
        }
        const response = yield* send(loading.url + path, { method: "POST", headers: json, body: JSON.stringify(bodies[path]) })
        if (path === "/v1/messages/count_tokens") continue
        assert.strictEqual(response.status, path.startsWith("/v1/messages") ? 529 : 503, path)
        errorType(path, response)
        assert.isAtLeast(Number(response.headers["retry-after"]), 1)
      }
      running.abort()
      yield* Effect.promise(() => first)
    }))

  it.live("408 for a request that does not arrive in time, 431 for headers without end, 400 for what is no HTTP", () =>
    Effect.gen(function*() {
      const hasty = yield* harness({ script, limits: { headersMs: 100, requestMs: 200 } })
      const strict = yield* harness({ script, limits: { headerBytes: 4096 } })
      const host = "host: localhost\r\n"
      for (const path of ["/v1/messages", "/v1/chat/completions"]) {
        const head = `POST ${path} HTTP/1.1\r\n${host}content-type: application/json\r\n`
        const cases = [
          ["a body that stops", `${head}content-length: 100\r\n\r\n{"messages":`, 408],
          ["headers that stop", head, 408],
          ["long headers", `${head}x: ${"a".repeat(5000)}\r\n\r\n`, 431],
          ["two lengths", `${head}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400],
          ["a length and chunks", `${head}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`, 400]
        ] as const
        for (const [name, bytes, status] of cases) {
          const response = yield* exchange((status === 408 ? hasty : strict).url, bytes)
          assert.strictEqual(response.status, status, `${name} ${path}`)
          assert.strictEqual(response.headers["connection"], "close")
          // Without the end of its headers a request has no path yet.
          assert.strictEqual(errorType(name === "headers that stop" ? "" : path, response), "invalid_request_error", `${name} ${path}`)
        }
      }
      yield* Effect.promise(() => eventually(() => hasty.log.length === 4 && strict.log.length === 6))
      for (const line of [...hasty.log, ...strict.log]) {
        const { outcome, request, status } = JSON.parse(line)
        assert.match(request, /^req_/)
        assert.include(["refused", "client_left"], outcome)
        assert.include([0, 400, 408, 431], status)
      }
      assert.deepStrictEqual([hasty, strict].map(({ engine }) => engine.requests.length), [0, 0])
    }))
})

describe("pages of other origins", () => {
  const origin = "https://app.example"
  const body = JSON.stringify({ messages: user("hi") })

  it.live("may ask and call where they are configured, and read errors", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { corsOrigins: [origin, "http://localhost:3000"], apiKey: "sk" } })
      const url = `${server.url}/v1/chat/completions`
      const preflight = yield* send(url, {
        method: "OPTIONS",
        headers: {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization,content-type,x-stainless-os"
        }
      })
      assert.deepStrictEqual([preflight.status, preflight.body], [204, ""])
      assert.strictEqual(preflight.headers["access-control-allow-origin"], origin)
      assert.strictEqual(preflight.headers["access-control-allow-headers"], "authorization,content-type,x-stainless-os")
      assert.include(String(preflight.headers["access-control-allow-methods"]), "POST")
      assert.include(String(preflight.headers["vary"]), "Origin")
      for (const [key, status] of [["sk", 200], ["wrong", 401]] as const) {
        const response = yield* send(url, { method: "POST", headers: { ...json, origin, authorization: `Bearer ${key}` }, body })
        assert.strictEqual(response.status, status)
        assert.strictEqual(response.headers["access-control-allow-origin"], origin)
        assert.strictEqual(response.headers["vary"], "Origin")
        assert.include(String(response.headers["access-control-expose-headers"]), "x-request-id")
      }
      const streamed = yield* send(url, {
        method: "POST",
        headers: { ...json, origin, authorization: "Bearer sk" },
        body: JSON.stringify({ messages: user("hi"), stream: true })
      })
      assert.strictEqual(streamed.headers["access-control-allow-origin"], origin)
    }))

  it.live("get nothing where they are not, or are only alike", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { corsOrigins: [origin] } })
      for (
        const other of [
          "http://app.example",
          "https://app.example.evil.example",
          "https://app.example:8443",
          "https://APP.example/",
          "https://sub.app.example",
          "null",
          "*"
        ]
      ) {
        for (
          const options of [{ method: "OPTIONS", headers: { "access-control-request-method": "POST" } }, {
            method: "POST",
            headers: json,
            body
          }]
        ) {
          const response = yield* send(`${server.url}/v1/chat/completions`, { ...options, headers: { ...options.headers, origin: other } })
          assert.strictEqual(response.status, 403, other)
          assert.isUndefined(response.headers["access-control-allow-origin"], other)
        }
      }
      const own = yield* send(`${server.url}/v1/models`, { method: "GET" })
      assert.isUndefined(own.headers["access-control-allow-origin"])
      const foreignHost = yield* send(`${server.url}/v1/models`, { method: "GET", headers: { origin, host: "evil.example" } })
      assert.strictEqual(foreignHost.status, 403)
      assert.strictEqual(server.engine.requests.length, 0)
    }))
})
