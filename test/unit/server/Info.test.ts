import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { openApi } from "../../../schema/Api.ts"
import { Health } from "../../../schema/mashbox/Health.ts"
import { Model, ModelList } from "../../../schema/openai/Models.ts"
import type { NativeExpertPaths } from "../../../src/engine/Native.ts"
import { errorOf, eventually, harness, leaving, tokensOf, user } from "./harness.ts"

const script = { answer: () => ({ tokens: tokensOf("ok!") }), model: { contextLength: 2048, slots: 4 } }

const get = (url: string) => Effect.promise(() => fetch(url))
const json = (response: Response) => Effect.promise((): Promise<unknown> => response.json())

describe("models", () => {
  it.live("lists the one model, for OpenAI's and Anthropic's clients", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const list = yield* Schema.decodeUnknownEffect(ModelList)(yield* json(yield* get(`${server.url}/v1/models?limit=1000`)))
      assert.strictEqual(list.first_id, "demo/model")
      assert.deepInclude(list.data[0], {
        id: "demo/model",
        owned_by: "mashbox-labs",
        created: 0,
        max_model_len: 2048,
        weights: "demo.gguf",
        bpw: 4,
        slots: 4,
        cache_ram_mib: 16
      })
    }))

  it.live("finds it by its encoded id and no other", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const found = yield* get(`${server.url}/v1/models/demo%2Fmodel`)
      assert.strictEqual((yield* Schema.decodeUnknownEffect(Model)(yield* json(found))).id, "demo/model")
      for (const id of ["demo", "demo%2Fmodel2", "..%2F..%2Fetc", "%00", "a".repeat(500)]) {
        const other = yield* get(`${server.url}/v1/models/${id}`)
        assert.strictEqual(other.status, 404, id)
        assert.strictEqual((yield* Effect.promise(() => errorOf(other))).code, "model_not_found")
      }
    }))
})

describe("health", () => {
  it.live("is 200 and ok on three paths when ready", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      for (const path of ["/", "/health", "/v1/health"]) {
        const response = yield* get(server.url + path)
        assert.strictEqual(response.status, 200)
        const health = yield* Schema.decodeUnknownEffect(Health)(yield* json(response))
        assert.deepInclude(health, { status: "ok", live_rows: 0, waiting: 0, worker_restarts: 0 })
      }
    }))

  it.live("is 503 and loading before", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...script, load: "never" } })
      const response = yield* get(`${server.url}/health`)
      assert.strictEqual(response.status, 503)
      const health = yield* Schema.decodeUnknownEffect(Health)(yield* json(response))
      assert.strictEqual(health.status, "loading")
    }))

  it.live("says on which path routed experts run", () =>
    Effect.gen(function*() {
      const of = Effect.fnUntraced(function*(experts: NativeExpertPaths | null, isa: string) {
        const server = yield* harness({ script: { ...script, model: { experts, isa } } })
        return (yield* Schema.decodeUnknownEffect(Health)(yield* json(yield* get(`${server.url}/health`)))).routed_experts
      })
      assert.isNull(yield* of(null, "avx512"))
      const kernel = { id: "routed-experts-avx512", version: packageJson.version, package: "mashbox" }
      assert.deepStrictEqual(yield* of({ kernelSites: 6, exactSites: 0, exactReasons: [] }, "avx512"), {
        path: "kernel",
        kernel,
        sites: { kernel: 6, exact: 0 },
        exact_why: []
      })
      assert.deepStrictEqual(yield* of({ kernelSites: 4, exactSites: 2, exactReasons: ["why"] }, "avx512"), {
        path: "mixed",
        kernel,
        sites: { kernel: 4, exact: 2 },
        exact_why: ["why"]
      })
      assert.deepStrictEqual(yield* of({ kernelSites: 0, exactSites: 6, exactReasons: ["why"] }, "scalar"), {
        path: "exact",
        kernel: null,
        sites: { kernel: 0, exact: 6 },
        exact_why: ["why"]
      })
      const loading = yield* harness({ script: { ...script, load: "never" } })
      assert.isNull((yield* Schema.decodeUnknownEffect(Health)(yield* json(yield* get(`${loading.url}/health`)))).routed_experts)
    }))

  it.live("counts what runs and the worker's restarts", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { answer: () => ({ tokens: [], fault: { _tag: "Hang", afterTokens: 0 } }) } })
      const leave = leaving()
      const held = server.post({ messages: user("hi") }, { signal: leave.signal }).catch(() => undefined)
      yield* Effect.promise(() => eventually(() => server.engine.requests.length === 1))
      yield* server.engine.loseWorker
      yield* Effect.promise(() => eventually(() => server.engine.requests.length === 2))
      const health = yield* Schema.decodeUnknownEffect(Health)(yield* json(yield* get(`${server.url}/health`)))
      assert.deepInclude(health, { status: "ok", live_rows: 1, worker_restarts: 1 })
      leave.abort()
      yield* Effect.promise(() => held)
    }))
})

describe("metrics", () => {
  it.live("counts requests and tokens under mashbox: names, and says nothing of users", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script, settings: { apiKey: "canarykey" } })
      const headers = { authorization: "Bearer canarykey" }
      const scrape = () => Effect.promise(() => fetch(`${server.url}/metrics`, { headers }).then((response) => response.text()))
      const value = (text: string, name: string) => {
        const line = text.split("\n").find((line) => line.startsWith(`mashbox:${name} `))
        assert.isDefined(line, name)
        return Number(line?.split(" ").at(-1))
      }
      const before = yield* scrape()
      yield* Effect.promise(() =>
        server.post({ messages: user("hi"), user: "canaryuser" }, { headers }).then((response) => response.text())
      )
      const after = yield* scrape()
      const grown = (name: string) => value(after, name) - value(before, name)
      assert.strictEqual(grown("prompt_tokens_total"), "user:hi|".length)
      assert.strictEqual(grown("generation_tokens_total"), 3)
      assert.strictEqual(grown("request_success_total{finished_reason=\"stop\"}"), 1)
      assert.strictEqual(grown("prefix_cache_queries_total"), "user:hi|".length)
      assert.strictEqual(value(after, "num_requests_running"), 0)
      assert.strictEqual(value(after, "cache_config_info{block_size=\"2048\",num_blocks=\"4\"}"), 1)
      for (const name of ["time_to_first_token", "request_queue_time", "e2e_request_latency", "time_per_output_token"]) {
        assert.isAtLeast(value(after, `${name}_seconds_count`), 1, name)
      }
      for (const name of ["num_preemptions_total", "worker_restarts_total", "compiles_after_ready_total"]) {
        assert.strictEqual(grown(name), 0, name)
      }
      assert.strictEqual(value(after, "kv_cache_usage_perc"), 0)
      assert.notInclude(after, "canary")
      for (const line of after.split("\n")) if (line !== "" && !line.startsWith("#")) assert.match(line, /^(mashbox|vllm):/)
    }))
})

describe("openapi.json", () => {
  it.live("is the generated document, with this server's model in the example", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const text = yield* Effect.promise(() => fetch(`${server.url}/openapi.json`).then((response) => response.text()))
      assert.include(text, "\"example\":{\"model\":\"demo/model\"")
      assert.deepStrictEqual(Object.keys(JSON.parse(text).paths), Object.keys(openApi().paths))
    }))
})
