import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Metrics from "../../../src/telemetry/Metrics.ts"

const present: Metrics.Present = {
  model: "demo",
  running: 1,
  waiting: 0,
  slots: 4,
  cacheUse: undefined,
  contextLength: 512,
  workerRestarts: 0
}

const cacheUse = (text: string) => /^mashbox:kv_cache_usage_perc (\S+)$/m.exec(text)?.[1]

describe("Metrics", () => {
  it.effect("kv_cache_usage_perc is the share of KV blocks in use, or of slots where the engine does not report blocks", () =>
    Effect.gen(function*() {
      const text = yield* Metrics.render({ ...present, cacheUse: 0.375 })
      assert.strictEqual(cacheUse(text), "0.375")
      assert.match(text, /^vllm:gpu_cache_usage_perc\{model_name="demo",engine="0"\} 0\.375$/m)
      assert.strictEqual(cacheUse(yield* Metrics.render(present)), "0.25")
      assert.strictEqual(cacheUse(yield* Metrics.render({ ...present, slots: 0 })), "0")
    }))
})
