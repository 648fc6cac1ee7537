import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type IncomingHttpHeaders, request } from "node:http"
import { hostCheck } from "../../../src/server/HostCheck.ts"
import { harness, tokensOf, user } from "./harness.ts"

const script = { answer: () => ({ tokens: tokensOf("ok") }) }

interface RawResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A request whose Host header is ours to choose. */
const raw = (url: string, options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string }) =>
  Effect.promise(() =>
    new Promise<RawResponse>((resolve, reject) => {
      const sent = request(url, { method: options.method ?? "GET", headers: options.headers ?? {}, agent: false }, (response) => {
        let body = ""
        response.on("data", (chunk) => body += chunk)
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
      })
      sent.on("error", reject)
      sent.end(options.body)
    })
  )

describe("the host check", () => {
  const hosts: ReadonlyArray<readonly [host: string | undefined, allowed: boolean]> = [
    ["localhost", true],
    ["LOCALHOST:8000", true],
    ["localhost:1", true],
    ["127.0.0.1", true],
    ["127.0.0.1:8000", true],
    ["127.9.9.9:8000", true],
    ["[::1]", true],
    ["[::1]:8000", true],
    [undefined, false],
    ["", false],
    ["evil.example", false],
    ["evil.example:8000", false],
    ["127.0.0.1.nip.io", false],
    ["127.0.0.1.evil.example:8000", false],
    ["localhost.evil.example", false],
    ["evil.localhost", false],
    ["localhost.", false],
    ["localhost..", false],
    [".localhost", false],
    ["localhost:", false],
    ["localhost:x", false],
    ["localhost:999999", false],
    ["localhost:80:80", false],
    ["localhost, evil.example", false],
    ["user@localhost", false],
    ["localhost/", false],
    ["localhost evil.example", false],
    ["http://localhost", false],
    ["0.0.0.0", false],
    ["0", false],
    ["127.1", false],
    ["2130706433", false],
    ["0x7f000001", false],
    ["10.0.0.1", false],
    ["192.168.1.5:8000", false],
    ["169.254.169.254", false],
    ["::1", false],
    ["[::]", false],
    ["[::ffff:127.0.0.1]", false],
    ["[fe80::1]", false],
    ["[::1", false],
    ["[::1]evil", false],
    ["metadata.google.internal", false],
    ["localhos\u0074\u0000", false],
    ["lоcalhost", false]
  ]

  it("knows a loopback server's names from all others", () => {
    const check = hostCheck("127.0.0.1")
    for (const [host, allowed] of hosts) assert.strictEqual(check({ host, origin: undefined }) === undefined, allowed, String(host))
  })

  it("lets a configured name in, and numeric addresses on every interface", () => {
    assert.isUndefined(hostCheck("box.lan")({ host: "BOX.lan:80", origin: undefined }))
    assert.isDefined(hostCheck("box.lan")({ host: "other.lan", origin: undefined }))
    assert.isUndefined(hostCheck("0.0.0.0")({ host: "192.168.1.5:8000", origin: undefined }))
    assert.isDefined(hostCheck("0.0.0.0")({ host: "evil.example", origin: undefined }))
  })

  it("takes only its own origin", () => {
    const check = hostCheck("127.0.0.1")
    const host = "localhost:8000"
    assert.isUndefined(check({ host, origin: "http://localhost:8000" }))
    for (
      const origin of [
        "null",
        "",
        "http://localhost",
        "http://localhost:3000",
        "https://localhost:8000",
        "http://evil.example",
        "http://localhost:8000.evil.example",
        "http://localhost:8000/",
        "file://",
        "chrome-extension://x"
      ]
    ) assert.strictEqual(check({ host, origin })?.reason, "ForeignOrigin", origin)
  })

  it.live("answers 403 before anything else, and calls no model", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const body = JSON.stringify({ messages: user("hi") })
      const json = { "content-type": "application/json" }
      const cases = [
        { headers: { host: "evil.example" } },
        { method: "HEAD", headers: { host: "evil.example" } },
        { method: "POST", headers: { ...json, host: "evil.example" }, body },
        { method: "POST", headers: { ...json, origin: "http://evil.example" }, body },
        { method: "POST", headers: { "content-type": "text/plain", origin: "null" }, body },
        { method: "OPTIONS", headers: { origin: "http://evil.example", "access-control-request-method": "POST" } }
      ]
      for (const options of cases) {
        const response = yield* raw(`${server.url}/v1/chat/completions`, options)
        assert.strictEqual(response.status, 403)
        assert.isUndefined(response.headers["access-control-allow-origin"])
      }
      assert.strictEqual(server.engine.requests.length, 0)
    }))
})

describe("methods and paths", () => {
  it.live("HEAD is 200 everywhere when ready, without a body or a key", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { apiKey: "sk" } })
      for (const path of ["/", "/health", "/v1/health", "/api/hello", "/v1/chat/completions", "/no/such"]) {
        const response = yield* raw(server.url + path, { method: "HEAD" })
        assert.deepStrictEqual([response.status, response.body], [200, ""], path)
      }
    }))

  it.live("HEAD is 503 while loading", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...script, load: "never" } })
      const response = yield* raw(`${server.url}/anything`, { method: "HEAD" })
      assert.strictEqual(response.status, 503)
      assert.isDefined(response.headers["retry-after"])
    }))

  it.live("unknown paths are a JSON 404", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      for (const path of ["/nope", "/v1", "/v1/models/a/b", "/v1/chat/completions/x", "/%zz", "/v1//models", "/..%2f"]) {
        const response = yield* raw(server.url + path, {})
        assert.strictEqual(response.status, 404, path)
        assert.strictEqual(JSON.parse(response.body).error.code, "unknown_route", path)
      }
    }))

  it.live("wrong methods are a JSON 405 with Allow", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const cases = [["GET", "/v1/chat/completions", "POST, HEAD"], ["DELETE", "/v1/models", "GET, HEAD"], [
        "POST",
        "/",
        "GET, HEAD"
      ]] as const
      for (const [method, path, allow] of cases) {
        const response = yield* raw(server.url + path, { method })
        assert.strictEqual(response.status, 405, path)
        assert.strictEqual(response.headers.allow, allow)
        assert.strictEqual(JSON.parse(response.body).error.code, "method_not_allowed")
      }
    }))

  it.live("every answer has a request id, the client's own when it is a plain one", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const own = yield* raw(`${server.url}/health`, { headers: { "x-request-id": "abc-1" } })
      assert.strictEqual(own.headers["x-request-id"], "abc-1")
      for (const path of ["/health", "/nope", "/v1/chat/completions"]) {
        const response = yield* raw(server.url + path, { headers: { "x-request-id": "a b\"c" } })
        assert.match(String(response.headers["x-request-id"]), /^req_[0-9a-f]{32}$/)
      }
    }))
})

describe("keys", () => {
  it.live("every route but health needs one", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { apiKey: "sk-right" } })
      const closed = [
        "/v1/models",
        "/v1/models/x",
        "/metrics",
        "/openapi.json",
        "/nope",
        "/v1/chat/completions",
        "/health/x",
        "/v1/messages"
      ]
      for (const path of closed) {
        for (const headers of [{}, { authorization: "Bearer sk-wrong" }, { "x-api-key": "sk-righ" }, { authorization: "sk-right" }]) {
          const response = yield* raw(server.url + path, { headers })
          assert.strictEqual(response.status, 401, path)
          assert.strictEqual(JSON.parse(response.body).error.type, "authentication_error")
        }
      }
      for (const path of ["/", "/health", "/v1/health"]) assert.strictEqual((yield* raw(server.url + path, {})).status, 200, path)
      for (const headers of [{ authorization: "Bearer sk-right" }, { "x-api-key": "sk-right" }, { authorization: "bearer  sk-right" }]) {
        assert.strictEqual((yield* raw(`${server.url}/v1/models`, { headers })).status, 200)
      }
    }))

  it.live("without keys any key is fine", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      assert.strictEqual((yield* raw(`${server.url}/v1/models`, { headers: { authorization: "Bearer x" } })).status, 200)
    }))
})
