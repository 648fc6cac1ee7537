import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Settings from "../../src/Settings.ts"

const sources = { flags: {}, environment: {}, file: {}, defaultModel: "demo.gguf" }
const failure = (given: Partial<Parameters<typeof Settings.resolve>[0]>) => Effect.flip(Settings.resolve({ ...sources, ...given }))

describe("Settings.resolve", () => {
  it.effect("has a default for everything", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* Settings.resolve(sources), {
        model: "demo.gguf",
        host: "127.0.0.1",
        port: 8000,
        contextLength: undefined,
        slots: 4,
        threads: undefined,
        kvType: "f16",
        cacheRamMib: 0,
        responsesDb: undefined,
        apiKeyFile: undefined,
        apiKey: undefined,
        corsOrigins: [],
        aliases: [],
        sampling: "greedy",
        models: undefined,
        websocket: false,
        stopRepetition: 2048,
        greedyToolSyntax: false
      })
    }))

  it.effect("prefers flags to the environment and the environment to the file", () =>
    Effect.gen(function*() {
      const value = yield* Settings.resolve({
        ...sources,
        flags: { port: 1 },
        environment: { MASHBOX_PORT: "2", MASHBOX_SLOTS: "2", MASHBOX_KV_TYPE: "f32", MASHBOX_API_KEY: "secret" },
        file: { port: 3, slots: 3, "cache-ram": 3 }
      })
      assert.deepStrictEqual([value.port, value.slots, value.cacheRamMib, value.kvType, value.apiKey], [1, 2, 3, "f32", "secret"])
    }))

  it.effect("fails on a bad value in the deciding source, even where a lower one is good", () =>
    Effect.gen(function*() {
      for (
        const [environment, file, setting] of [
          [{ MASHBOX_PORT: "80x" }, { port: 80 }, "port"],
          [{ MASHBOX_PORT: "65536" }, {}, "port"],
          [{ MASHBOX_SLOTS: "0" }, {}, "slots"],
          [{ MASHBOX_KV_TYPE: "q8" }, {}, "kv-type"],
          [{}, { ctx: 1.5 }, "ctx"]
        ] as const
      ) {
        assert.strictEqual((yield* failure({ environment, file })).setting, setting)
      }
    }))

  it.effect("takes lists with commas or repeated, from every source", () =>
    Effect.gen(function*() {
      const origins = ["https://app.example", "http://localhost:3000"]
      for (
        const given of [
          { flags: { "cors-origin": origins, alias: ["a", "org/b:7b"] } },
          { flags: { "cors-origin": [origins.join(",")], alias: ["a, org/b:7b"] } },
          { environment: { MASHBOX_CORS_ORIGIN: origins.join(", "), MASHBOX_ALIAS: "a,org/b:7b," } },
          { file: { "cors-origin": origins, alias: "a,org/b:7b" } }
        ]
      ) {
        const value = yield* Settings.resolve({ ...sources, ...given })
        assert.deepStrictEqual([value.corsOrigins, value.aliases], [origins, ["a", "org/b:7b"]], JSON.stringify(given))
      }
      for (const origin of ["*", "null", "app.example", "https://app.example/", "https://app.example:443", "HTTPS://app.example"]) {
        assert.strictEqual((yield* failure({ environment: { MASHBOX_CORS_ORIGIN: origin } })).setting, "cors-origin", origin)
      }
      assert.strictEqual((yield* failure({ file: { alias: ["two words"] } })).setting, "alias")
    }))

  it.effect("takes what is on or off from every source", () =>
    Effect.gen(function*() {
      for (
        const [given, on] of [
          [{ flags: { websocket: true } }, true],
          [{ flags: { websocket: false }, environment: { MASHBOX_WEBSOCKET: "true" } }, false],
          [{ environment: { MASHBOX_WEBSOCKET: "1" } }, true],
          [{ environment: { MASHBOX_WEBSOCKET: "off" }, file: { websocket: true } }, false],
          [{ file: { websocket: true } }, true],
          [{ file: { websocket: false } }, false]
        ] as const
      ) {
        assert.strictEqual((yield* Settings.resolve({ ...sources, ...given })).websocket, on, JSON.stringify(given))
      }
      assert.deepInclude(yield* failure({ environment: { MASHBOX_WEBSOCKET: "maybe" } }), { setting: "websocket" })
      assert.deepInclude(yield* failure({ file: { websocket: 2 } }), { setting: "websocket" })
    }))

  it.effect("takes the syntax of calls to be greedy from every source, and off where none says so", () =>
    Effect.gen(function*() {
      for (
        const [given, on] of [
          [{}, false],
          [{ flags: { "greedy-tool-syntax": true } }, true],
          [{ environment: { MASHBOX_GREEDY_TOOL_SYNTAX: "on" } }, true],
          [{ file: { "greedy-tool-syntax": true } }, true],
          [{ environment: { MASHBOX_GREEDY_TOOL_SYNTAX: "off" }, file: { "greedy-tool-syntax": true } }, false]
        ] as const
      ) {
        assert.strictEqual((yield* Settings.resolve({ ...sources, ...given })).greedyToolSyntax, on, JSON.stringify(given))
      }
    }))

  it.effect("names a setting of the file that it does not know", () =>
    Effect.gen(function*() {
      const error = yield* failure({ file: { prot: 80 } })
      assert.strictEqual(error.setting, "prot")
      assert.include(error.message, "port")
    }))
})
