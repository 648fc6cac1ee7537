import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { harness, tokensOf, user } from "../server/harness.ts"

interface Dashboard {
  readonly panels: ReadonlyArray<{ readonly title: string; readonly targets: ReadonlyArray<{ readonly expr: string }> }>
  readonly templating: { readonly list: ReadonlyArray<{ readonly query: string | { readonly query: string } }> }
}

const dashboard: Dashboard = JSON.parse(readFileSync(new URL("../../../dashboards/mashbox.json", import.meta.url), "utf8"))

const queries = [
  ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...dashboard.templating.list.map(({ query }) => typeof query === "string" ? query : query.query).filter((query) => query !== "prometheus")
]

/** What dashboards made for vLLM ask for. */
const vllmDashboard = [
  "e2e_request_latency_seconds_bucket",
  "e2e_request_latency_seconds_sum",
  "e2e_request_latency_seconds_count",
  "prompt_tokens_total",
  "generation_tokens_total",
  "time_per_output_token_seconds_bucket",
  "inter_token_latency_seconds_bucket",
  "num_requests_running",
  "num_requests_waiting",
  "time_to_first_token_seconds_bucket",
  "kv_cache_usage_perc",
  "gpu_cache_usage_perc",
  "prefix_cache_queries_total",
  "prefix_cache_hits_total",
  "request_prompt_tokens_bucket",
  "request_generation_tokens_bucket",
  "request_success_total",
  "request_queue_time_seconds_sum",
  "request_prefill_time_seconds_sum",
  "request_decode_time_seconds_sum",
  "num_preemptions_total",
  "cache_config_info"
]

const scrape = (url: string) => Effect.promise(() => fetch(`${url}/metrics`).then((response) => response.text()))

const namesIn = (text: string) =>
  new Set(text.split("\n").filter((line) => !line.startsWith("#")).map((line) => /^[\w:]+/.exec(line)?.[0] ?? ""))

const script = { answer: () => ({ tokens: tokensOf("ok") }) }

describe("dashboards/mashbox.json", () => {
  it.live("asks for nothing that /metrics does not have, before the first request and after it", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      yield* scrape(server.url)
      const before = namesIn(yield* scrape(server.url))
      yield* Effect.promise(() => server.post({ messages: user("hi") }).then((response) => response.text()))
      const after = namesIn(yield* scrape(server.url))
      assert.isAtLeast(queries.length, 30)
      for (const query of queries) {
        const names = query.match(/\b(mashbox|vllm):\w+/g) ?? []
        assert.isAtLeast(names.length, 1, query)
        for (const name of names) {
          assert.isTrue(before.has(name), `${name} before`)
          assert.isTrue(after.has(name), `${name} after`)
        }
      }
    }))

  it.live("labels that queries group by are there", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      yield* Effect.promise(() => server.post({ messages: user("hi") }).then((response) => response.text()))
      const text = yield* scrape(server.url)
      for (const query of queries) {
        const [, label] = /sum by \((\w+)\)/.exec(query) ?? []
        if (label !== undefined) assert.match(text, new RegExp(`^${/mashbox:\w+/.exec(query)?.[0]}\\{.*${label}=`, "m"), query)
      }
    }))
})

describe("vLLM's names", () => {
  it.live("have the same values as ours, the model as a label, and one HELP and TYPE each", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      yield* Effect.promise(() => server.post({ messages: user("hi") }).then((response) => response.text()))
      const text = yield* scrape(server.url)
      const names = namesIn(text)
      for (const name of vllmDashboard) assert.isTrue(names.has(`vllm:${name}`), name)
      const lines = text.split("\n")
      const value = (start: string) => lines.find((line) => line.startsWith(start))?.split(" ").at(-1)
      const labels = "model_name=\"demo/model\",engine=\"0\""
      for (const name of ["prompt_tokens_total", "generation_tokens_total", "e2e_request_latency_seconds_count", "num_requests_running"]) {
        assert.isDefined(value(`mashbox:${name} `), name)
        assert.strictEqual(value(`vllm:${name}{${labels}} `), value(`mashbox:${name} `), name)
      }
      assert.strictEqual(
        value(`vllm:request_success_total{${labels},finished_reason="stop"} `),
        value("mashbox:request_success_total{finished_reason=\"stop\"} ")
      )
      const described = lines.filter((line) => line.startsWith("# TYPE ")).map((line) => line.split(" ")[2])
      assert.strictEqual(new Set(described).size, described.length)
      const family = (name: string) => name.replace(/_(bucket|sum|count)$/, "")
      for (const name of names) {
        if (name !== "") assert.isTrue(described.includes(name) || described.includes(family(name)), `${name} has no TYPE`)
      }
    }))
})
