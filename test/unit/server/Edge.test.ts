import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib"
import { untilFailed } from "../../../src/cli/run.ts"
import { EngineError } from "../../../src/domain/Errors.ts"
import { Engine } from "../../../src/engine/Engine.ts"
import { layerScripted } from "../../../src/engine/EngineScripted.ts"
import { sessionOf, sessionTag } from "../../../src/server/RequestRecord.ts"
import { errorOf, eventually, harness, leaving, queued, tokensOf, user } from "./harness.ts"

const script = { answer: () => ({ tokens: tokensOf("ok") }) }

const failure = new EngineError({
  reason: "LoadFailed",
  code: "crashed",
  message: "/home/someone/model.gguf broke (5 starts in a row failed)"
})

describe("an engine that failed for good", () => {
  it.live("is no loading one: health says so, without the path, and requests get 503", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...script, load: { error: failure } } })
      const health = yield* Effect.promise(() => fetch(`${server.url}/health`))
      assert.strictEqual(health.status, 503)
      const body = yield* Effect.promise(() => health.text())
      assert.deepInclude(JSON.parse(body), { status: "failed", message: "The engine has failed for good (LoadFailed, crashed)." })
      assert.notInclude(body, "someone")
      const response = yield* Effect.promise(() => server.post({ messages: user("hi") }))
      assert.strictEqual(response.status, 503)
      assert.strictEqual((yield* Effect.promise(() => errorOf(response))).code, "model_unavailable")
    }))

  it.effect("ends the command that serves it", () =>
    Effect.gen(function*() {
      const waiting = yield* Effect.forkChild(untilFailed(yield* Engine), { startImmediately: true })
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(waiting.pollUnsafe())
      const failed = yield* Effect.forkChild(
        Effect.flatMap(Engine, untilFailed).pipe(Effect.provide(layerScripted({ ...script, load: { error: failure } })))
      )
      assert.deepStrictEqual(yield* Fiber.await(failed), Exit.fail(failure))
      yield* Fiber.interrupt(waiting)
    }).pipe(Effect.provide(layerScripted(script))))
})

describe("aliases", () => {
  it.live("are listed, and requests may name them; answers carry the name that was asked for", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { aliases: ["claude-local", "gpt-4o"] } })
      const read = (path: string, init?: RequestInit) =>
        Effect.promise(() => fetch(server.url + path, init).then(async (response) => [response.status, JSON.parse(await response.text())]))
      const [, list] = yield* read("/v1/models")
      assert.deepStrictEqual(list.data.map((model: { readonly id: string }) => model.id), ["demo/model", "claude-local", "gpt-4o"])
      assert.deepStrictEqual([list.first_id, list.last_id], ["demo/model", "gpt-4o"])
      const [status, model] = yield* read("/v1/models/gpt-4o")
      assert.deepStrictEqual([status, model.id, model.display_name, model.weights], [200, "gpt-4o", "gpt-4o", "demo.gguf"])
      assert.strictEqual((yield* read("/v1/models/gpt-5"))[0], 404)
      const bodies = {
        "/v1/chat/completions": { messages: user("hi") },
        "/v1/completions": { prompt: "hi" },
        "/v1/responses": { input: "hi" },
        "/v1/messages": { max_tokens: 5, messages: user("hi") },
        "/v1/messages/count_tokens": { messages: user("hi") }
      }
      for (const [path, body] of Object.entries(bodies)) {
        const send = (model: string) =>
          read(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ...body, model }) })
        for (const name of ["demo/model", "claude-local", "gpt-4o"]) {
          const [status, answer] = yield* send(name)
          assert.strictEqual(status, 200, `${path} ${name}`)
          if ("model" in answer) assert.strictEqual(answer.model, name, `${path} ${name}`)
        }
      }
      assert.strictEqual((yield* Effect.promise(() => server.post({ messages: user("hi"), model: "gpt-5" }))).status, 404)
    }))
})

describe("sessions", () => {
  const cases: ReadonlyArray<readonly [headers: Record<string, string>, name: string | undefined]> = [
    [{}, undefined],
    [{ "x-session-id": "" }, undefined],
    [{ "x-session-id": "a" }, "a"],
    [{ "x-claude-code-session-id": "c" }, "c"],
    [{ "x-claude-code-session-id": "c", "x-claude-code-agent-id": "1" }, "c 1"],
    [{ "x-claude-code-agent-id": "1" }, undefined],
    [{ "session-id": "codex" }, "codex"],
    [{ "x-session-affinity": "pi" }, "pi"],
    [{ "x-session-id": "own", "session-id": "codex" }, "own"]
  ]

  it("are named by the headers of each client", () => {
    for (const [headers, name] of cases) {
      assert.strictEqual(sessionOf(headers), name === undefined ? undefined : sessionTag(name), JSON.stringify(headers))
    }
    assert.strictEqual(sessionTag("a"), createHash("sha256").update("a").digest("hex").slice(0, 12))
  })

  it.live("are in the log as a tag, from headers and from prompt_cache_key", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      yield* Effect.promise(() => server.post({ messages: user("hi") }, { headers: { "session-id": "codex" } }))
      yield* Effect.promise(() => server.post({ messages: user("hi"), prompt_cache_key: "key" }))
      yield* Effect.promise(() => server.post({ messages: user("hi") }))
      yield* Effect.promise(() => eventually(() => server.log.length === 3))
      assert.deepStrictEqual(server.log.map((line) => JSON.parse(line).session), [sessionTag("codex"), sessionTag("key"), undefined])
    }))

  it.live("of one tenant take turns", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: (_, index) => index === 0 ? { tokens: [], fault: { _tag: "Hang", afterTokens: 0 } } : { tokens: tokensOf("ok") }
        },
        settings: { slots: 1 }
      })
      const holder = leaving()
      const send = (prompt: string, session: string, init: RequestInit = {}) =>
        server.post({ messages: user(prompt) }, { ...init, headers: { "x-session-id": session } }).then(
          (response) => response.text(),
          () => "aborted"
        )
      const answers = [send("a0", "a", { signal: holder.signal })]
      yield* Effect.promise(() => eventually(() => server.engine.running() === 1))
      for (const [index, [prompt, session]] of ([["a1", "a"], ["a2", "a"], ["a3", "a"], ["b1", "b"]] as const).entries()) {
        answers.push(send(prompt, session))
        yield* queued(server, index + 1)
      }
      holder.abort()
      yield* Effect.promise(() => Promise.all(answers))
      const order = server.engine.requests.map(({ tokens }) => String.fromCharCode(...tokens).slice(5, 7))
      assert.deepStrictEqual(order, ["a0", "a1", "b1", "a2", "a3"])
    }))
})

describe("bodies that are odd or hostile", () => {
  const json = { "content-type": "application/json" }
  const message = (content: string) => `{"messages":[{"role":"user","content":"${content}"}]}`
  const large = "x".repeat(300_000)

  /** Each with its status, and where it is an answer what the model got. Those above 256 KiB take the way of large bodies. */
  const cases: ReadonlyArray<readonly [name: string, body: string, status: number, prompt?: string]> = [
    ["100 000 levels of lists", `{"messages":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, 400],
    ["100 000 levels of objects", `{"a":`.repeat(100_000) + "1" + "}".repeat(100_000), 400],
    ["a million levels without end", "[".repeat(1_000_000), 400],
    ["deep nesting in an ignored field", `{"messages":[],"x":${"[".repeat(100)}${"]".repeat(100)}}`, 400],
    ["a key twice: the last one counts", `{"messages":[],"messages":[{"role":"user","content":"last"}]}`, 200, "user:last|"],
    ["__proto__", `{"__proto__":{"messages":1},"messages":[{"role":"user","content":"hi","__proto__":{"role":"x"}}]}`, 200, "user:hi|"],
    ["constructor and prototype", `{"constructor":{"prototype":{"polluted":1}},${message("hi").slice(1)}`, 200, "user:hi|"],
    ["a lone surrogate", message("\\ud800"), 200, "user:\ufffd|"],
    ["a lone surrogate in a large body", `{"x":"${large}",${message("\\udc00").slice(1)}`, 200, "user:\ufffd|"],
    ["NUL", message("a\\u0000b"), 200, "user:a\u0000b|"],
    ["a raw NUL", message("a\u0000b"), 400],
    ["a raw NUL in a large body", `{"x":"${large}",${message("a\u0000b").slice(1)}`, 400],
    ["only a NUL", "\u0000", 400],
    ["a number beyond double", `{"temperature":1e999,${message("hi").slice(1)}`, 400],
    ["NaN", `{"temperature":NaN,${message("hi").slice(1)}`, 400],
    ["trailing text", `${message("hi")}x`, 400],
    ["trailing text after a large body", `{"x":"${large}"}x`, 400],
    ["a large body", `{"x":"${large}",${message("hi").slice(1)}`, 200, "user:hi|"],
    ["a large list", `[${Array.from({ length: 100_000 }, () => "[]").join(",")}]`, 400],
    ["a byte order mark", `\ufeff${message("hi")}`, 200, "user:hi|"],
    ["a large body with a byte order mark", `\ufeff{"x":"${large}",${message("hi").slice(1)}`, 200, "user:hi|"]
  ]

  it.live("get a typed answer, and the server goes on", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, limits: { bodyBytes: 8 * 1024 * 1024 } })
      for (const [name, body, status, prompt] of cases) {
        const response = yield* Effect.promise(() => server.post(body))
        assert.strictEqual(response.status, status, name)
        if (status === 400) assert.strictEqual((yield* Effect.promise(() => errorOf(response))).type, "invalid_request_error", name)
        else yield* Effect.promise(() => response.text())
        if (prompt !== undefined) assert.strictEqual(String.fromCharCode(...server.engine.requests.at(-1)!.tokens), prompt, name)
      }
      assert.isUndefined(Object.getOwnPropertyDescriptor(Object.prototype, "polluted"))
    }))

  it.live("are refused when they unpack to too much, in every coding, at once", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const zeros = Buffer.alloc(64 * 1024 * 1024)
      const bombs = {
        gzip: gzipSync(zeros),
        deflate: deflateSync(zeros),
        br: brotliCompressSync(zeros.subarray(0, 1 << 23)),
        zstd: zstdCompressSync(zeros)
      }
      for (const [coding, bomb] of Object.entries(bombs)) {
        const before = process.memoryUsage().arrayBuffers
        const response = yield* Effect.promise(() =>
          server.post("", { body: new Uint8Array(bomb).slice(0, 65_000), headers: { ...json, "content-encoding": coding } })
        )
        assert.strictEqual(response.status, 413, coding)
        assert.strictEqual((yield* Effect.promise(() => errorOf(response))).code, "body_too_large", coding)
        assert.isBelow(process.memoryUsage().arrayBuffers - before, 32 * 1024 * 1024, coding)
      }
      assert.strictEqual(server.engine.requests.length, 0)
    }))
})
