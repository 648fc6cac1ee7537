import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inCatalog } from "../../../src/cli/catalog.ts"
import * as Catalog from "../../../src/models/Catalog.ts"

const folder = mkdtempSync(join(tmpdir(), "mashbox-catalog-"))
afterAll(() => rmSync(folder, { recursive: true }))

const catalog = (name: string, content: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content))
  return path
}

writeFileSync(join(folder, "own.jinja"), "{{ messages[0].content }}")
const full = catalog("models.json", {
  models: {
    "qwen3:8b": {
      file: "weights/qwen3.gguf",
      aliases: ["gpt-4o", "coder"],
      chat_template: "own.jinja",
      tool_syntax: "hermes",
      reasoning: ["<think>", "</think>"],
      pre_tokenizer: "qwen2",
      sampling: { temperature: 0.6, top_p: 0.95, top_k: 20, rep_window: 64 }
    },
    plain: { file: "/models/plain.gguf" }
  }
})

const find = (path: string, model: string) => Catalog.find(path, model).pipe(Effect.provide(NodeServices.layer))

describe("a catalog", () => {
  it.effect("names models by id, alias and file", () =>
    Effect.gen(function*() {
      const file = join(folder, "weights/qwen3.gguf")
      for (const name of ["qwen3:8b", "coder", file]) {
        assert.deepEqual(yield* find(full, name), {
          id: "qwen3:8b",
          file,
          aliases: ["gpt-4o", "coder"],
          chatTemplate: "{{ messages[0].content }}",
          toolSyntax: "hermes",
          reasoning: ["<think>", "</think>"],
          preTokenizer: "qwen2",
          sampling: { temperature: 0.6, topP: 0.95, topK: 20, repetitionWindow: 64 }
        })
      }
      assert.deepInclude(yield* find(full, "plain"), { id: "plain", file: "/models/plain.gguf", sampling: {}, chatTemplate: undefined })
      assert.isUndefined(yield* find(full, "another"))
    }))

  it.effect.each(
    [
      ["no JSON", "{", /models\.json|bad/],
      ["an unknown key", { models: { a: { file: "a.gguf", colour: "red" } } }, /colour/],
      ["no file", { models: { a: {} } }, /file/],
      ["a bad id", { models: { "a b": { file: "a.gguf" } } }, /a b|name/],
      ["a temperature of 9", { models: { a: { file: "a.gguf", sampling: { temperature: 9 } } } }, /temperature/],
      ["a tag too many", { models: { a: { file: "a.gguf", reasoning: ["a", "b", "c"] } } }, /reasoning/]
    ] as const
  )("with %s is refused and says where", ([, content, expected]) =>
    Effect.gen(function*() {
      const path = catalog("bad.json", content)
      const error = yield* Effect.flip(find(path, "a"))
      assert.deepInclude(error, { _tag: "ModelError", reason: "Invalid", subject: "models.json" })
      assert.match(error.message, expected)
      assert.include(error.message, path)
      assert.notInclude(error.message, "\n")
    }))

  it.effect("that is not there, or whose template is not, is refused", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(find(join(folder, "none.json"), "a"))).reason, "NotFound")
      const path = catalog("template.json", { models: { a: { file: "a.gguf", chat_template: "none.jinja" } } })
      assert.include((yield* Effect.flip(find(path, "a"))).message, "none.jinja")
    }))
})

describe("settings", () => {
  const resolve = (model: string, models: string | undefined, environment: Record<string, string> = {}) =>
    inCatalog({ model, models }, environment).pipe(Effect.provide(NodeServices.layer))

  it.effect("take the file of a model that the catalog names, and leave others alone", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* resolve("coder", full)).model, join(folder, "weights/qwen3.gguf"))
      assert.deepEqual(yield* resolve("x.gguf", full), { model: "x.gguf", models: full })
      assert.deepEqual(yield* resolve("coder", undefined, { XDG_CONFIG_HOME: folder }), { model: "coder", models: undefined })
      assert.strictEqual((yield* Effect.flip(resolve("coder", join(folder, "none.json")))).reason, "NotFound")
    }))
})
