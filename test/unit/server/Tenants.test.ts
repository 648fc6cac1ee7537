import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { harness } from "./harness.ts"

const keyFile = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "mashbox-tenants-"))
    writeFileSync(join(folder, "keys"), "ants:sk-ants\nbees:sk-bees\n")
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const ask = [{ role: "user", content: "hi" }]

describe("prompts", () => {
  it.live("are encoded in the name of their tenant on every route, so that caches keep tenants apart", () =>
    Effect.gen(function*() {
      const folder = yield* keyFile
      const tenants: Array<string> = []
      const server = yield* harness({
        script: { answer: () => ({ tokens: [104, 105] }) },
        settings: { apiKeyFile: join(folder, "keys") },
        onEncode: (tenant) => tenants.push(tenant)
      })
      for (
        const [path, body] of [
          ["/v1/chat/completions", { messages: ask, max_tokens: 1 }],
          ["/v1/completions", { prompt: "hi", max_tokens: 1 }],
          ["/v1/responses", { input: "hi", max_output_tokens: 16 }],
          ["/v1/messages", { model: "demo/model", messages: ask, max_tokens: 1 }],
          ["/v1/messages/count_tokens", { model: "demo/model", messages: ask }],
          ["/v1/responses/input_tokens", { input: "hi" }],
          ["/tokenize", { content: "hi" }],
          ["/v1/chat/completions/render", { messages: ask }]
        ] as const
      ) {
        for (const tenant of ["ants", "bees"]) {
          tenants.length = 0
          const response = yield* Effect.promise(() =>
            fetch(server.url + path, {
              method: "POST",
              headers: { "content-type": "application/json", authorization: `Bearer sk-${tenant}` },
              body: JSON.stringify(body)
            })
          )
          assert.strictEqual(response.status, 200, path)
          yield* Effect.promise(() => response.text())
          assert.deepEqual(tenants, [tenant], path)
        }
      }
    }))
})
