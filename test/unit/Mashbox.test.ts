import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ServedModel } from "../../src/domain/ServedModel.ts"
import { layerModel } from "../../src/Mashbox.ts"
import type { CatalogEntry } from "../../src/models/Catalog.ts"
import { ChatTemplate } from "../../src/prompt/ChatTemplate.ts"
import { defaults, Settings, type SettingsValue } from "../../src/Settings.ts"
import { type KeyValue, withKeys } from "../support/GgufKeys.ts"

const folder = mkdtempSync(join(tmpdir(), "mashbox-model-"))
afterAll(() => rmSync(folder, { recursive: true }))

// Without its own template, under whose key tests write theirs.
const base = Buffer.from(
  readFileSync("test/fixtures/golden/tokenizer/small/qwen2.gguf", "latin1").replace("tokenizer.chat_template", "tokenizer.some_template"),
  "latin1"
)

const model = (name: string, keys: Readonly<Record<string, KeyValue>>): string => {
  const path = join(folder, name)
  writeFileSync(path, withKeys(base, keys))
  return path
}

const entry = (changes: Partial<CatalogEntry>): CatalogEntry => ({
  id: "mine",
  file: "",
  aliases: ["other"],
  chatTemplate: undefined,
  toolSyntax: undefined,
  reasoning: undefined,
  preTokenizer: undefined,
  sampling: {},
  ...changes
})

const services = (settings: Partial<SettingsValue> & { readonly model: string }) =>
  Effect.gen(function*() {
    return { served: yield* ServedModel, template: yield* ChatTemplate }
  }).pipe(Effect.provide(layerModel.pipe(Layer.provide(Settings.layer({ ...defaults, ...settings })))))

const refusal = (settings: Partial<SettingsValue> & { readonly model: string }) => Effect.flip(services(settings))

const sampled = model("sampled.gguf", {
  "general.sampling.temp": { f32: 0.6 },
  "general.sampling.top_k": { i32: 20 },
  "general.sampling.top_p": { f32: 0.95 },
  "general.sampling.penalty_repeat": { f32: 1.05 },
  "general.sampling.penalty_last_n": { i32: -1 }
})

const broken = (name: string) => `test/fixtures/golden/broken/${name}.gguf`

describe("the model's sampling", () => {
  it.effect("holds only where it is asked for, the catalog's before the file's", () =>
    Effect.gen(function*() {
      assert.isUndefined((yield* services({ model: sampled })).served.samplingDefaults)
      const { served } = yield* services({
        model: sampled,
        sampling: "model",
        catalogEntry: entry({ sampling: { temperature: 1, minP: 0.1 } })
      })
      assert.deepEqual(served.samplingDefaults, {
        temperature: 1,
        topK: 20,
        topP: 0.95,
        minP: 0.1,
        repetitionPenalty: 1.05,
        frequencyPenalty: 0,
        presencePenalty: 0,
        repetitionWindow: 2 ** 31 - 1
      })
    }))

  it.effect.each(
    [
      ["general.sampling.temp", { f32: Number.NaN }],
      ["general.sampling.temp", { f32: -1 }],
      ["general.sampling.top_p", { f32: 0 }],
      ["general.sampling.top_k", { i32: -5 }],
      ["general.sampling.min_p", { string: "0.1" }]
    ] as const
  )("that is no value for it is refused by its key: %s", ([key, value]) =>
    Effect.gen(function*() {
      const error = yield* refusal({ model: model("bad.gguf", { [key]: value }) })
      assert.deepInclude(error, { _tag: "ModelError", reason: "Invalid", subject: key })
    }))
})

describe("the catalog's word", () => {
  it.effect("gives the model its id, names, reasoning and syntax", () =>
    Effect.gen(function*() {
      const { served, template } = yield* services({
        model: sampled,
        aliases: ["flag"],
        catalogEntry: entry({ toolSyntax: "hermes", reasoning: ["<muse>", "</muse>"] })
      })
      assert.deepInclude(served, { id: "mine", toolSyntax: "hermes" })
      assert.deepEqual(served.aliases, ["flag", "other"])
      assert.deepEqual(template.reasoning?.tags[0], ["<muse>", "</muse>"])
    }))

  it.effect("takes the place of a template that cannot run, which is refused without", () =>
    Effect.gen(function*() {
      for (const name of ["template-not-jinja", "template-endless"]) {
        const error = yield* refusal({ model: broken(name) })
        assert.deepInclude(error, { _tag: "ModelError", reason: "Unsupported", subject: "tokenizer.chat_template" })
      }
      const never = model("never.gguf", { "tokenizer.chat_template": { string: "{{ raise_exception('not\\ntoday') }}" } })
      assert.include((yield* refusal({ model: never })).message, "not today")
      const { served, template } = yield* services({
        model: never,
        catalogEntry: entry({ chatTemplate: "{% for m in messages %}<{{ m.content }}>{% endfor %}" })
      })
      const prompt = yield* template.render({ messages: [{ role: "user", content: "hi" }], tools: [], templateVariables: {} })
      assert.strictEqual(prompt.text, "<hi>")
      assert.include(served.chatTemplate, "m.content")
    }))

  it.effect("names a pre-tokenizer for one that is not known", () =>
    Effect.gen(function*() {
      const unknown = broken("pre-unknown")
      const error = yield* refusal({ model: unknown })
      assert.deepInclude(error, { reason: "Unsupported", subject: "tokenizer.ggml.pre" })
      assert.include(error.message, "qwen2")
      yield* services({ model: unknown, catalogEntry: entry({ preTokenizer: "qwen2" }) })
    }))

  it.effect("of a syntax that is not known is refused with those that are", () =>
    Effect.gen(function*() {
      const error = yield* refusal({ model: sampled, catalogEntry: entry({ toolSyntax: "morse" }) })
      assert.deepInclude(error, { _tag: "ModelError", subject: "models.json" })
      assert.include(error.message, "hermes")
    }))
})

describe("a tokenizer that is not known", () => {
  it.effect("is refused by its name", () =>
    Effect.gen(function*() {
      const path = join(folder, "kind.gguf")
      writeFileSync(path, readFileSync("test/fixtures/golden/tokenizer/small/qwen2.gguf", "latin1").replace("gpt2", "rwkv"), "latin1")
      const error = yield* refusal({ model: path })
      assert.deepInclude(error, { _tag: "ModelError", reason: "Unsupported", subject: "tokenizer.ggml.model" })
      assert.match(error.message, /rwkv.*gpt2, llama, gemma4/)
    }))
})
