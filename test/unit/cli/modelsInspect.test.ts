import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ModelReport from "../../../src/cli/ModelReport.ts"
import { addonPath } from "../../../src/engine/EnginePaths.ts"
import * as GgufMetadata from "../../../src/models/GgufMetadata.ts"
import { withKeys } from "../../support/GgufKeys.ts"

const folder = mkdtempSync(join(tmpdir(), "mashbox-inspect-"))
afterAll(() => rmSync(folder, { recursive: true }))

const demo = "models/mashbox-demo.gguf"
const broken = (name: string) => `test/fixtures/golden/broken/${name}.gguf`
const settings = { contextLength: undefined, slots: 4, kvType: "f16", threads: undefined } as const

const report = (model: string, changes: Partial<ModelReport.ReportOptions> = {}) => ModelReport.make({ ...settings, model, ...changes })

/** Whether there is an addon of this version. */
const canPlan = existsSync(addonPath()) && typeof createRequire(import.meta.url)(addonPath()).inspect === "function"
const planned = it.live.skipIf(!canPlan)
const why = canPlan ? "" : " (no native addon)"

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const run = (args: ReadonlyArray<string>) =>
  Effect.promise(() =>
    new Promise<Ended>((resolve) => {
      execFile(
        process.execPath,
        ["src/cli.ts", "models", "inspect", ...args],
        { env: { ...process.env, XDG_CONFIG_HOME: folder } },
        (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
      )
    })
  )

describe("what a file holds", () => {
  it.live("is told from its header", () =>
    Effect.gen(function*() {
      const { chat, memory: _, problems: __, ...rest } = yield* report(demo)
      assert.deepEqual(chat, { template: "model", tool_syntax: "hermes", reasoning: ["<think>", "</think>"] })
      assert.deepInclude(rest, { id: "mashbox-demo", architecture: "qwen3", parts: 1, context_length: 131_072, sampling: {} })
      assert.deepEqual(rest.tokenizer, {
        model: "gpt2",
        pre_tokenizer: "qwen2",
        tokens: 4096,
        bos: "<|endoftext|>",
        eos: "<|im_end|>",
        end_tokens: ["<|endoftext|>", "<|im_end|>"]
      })
      assert.deepEqual(rest.tensors.by_format.map(({ format, tensors }) => [format, tensors]), [["Q8_0", 43], ["F32", 25]])
      const { tensorBytes } = yield* GgufMetadata.read(demo)
      assert.strictEqual(rest.tensors.by_format.reduce((total, { bytes }) => total + bytes, 0), tensorBytes)
    }))

  planned(`has the engine's own plan${why}`, () =>
    Effect.gen(function*() {
      const { memory, problems } = yield* report(demo, { contextLength: 4096, slots: 2, kvType: "f32" })
      assert.deepEqual(problems, [])
      assert.deepInclude(memory, { slots: 2, context_length: 4096, kv_type: "f32", fits: true })
      const half = (yield* report(demo, { contextLength: 4096, slots: 1, kvType: "f32" })).memory
      assert.strictEqual(memory?.kv_cache, 2 * (half?.kv_cache ?? 0))
      const whole = yield* report(demo, { contextLength: 16_777_216, slots: 256 })
      assert.deepEqual([whole.memory?.fits, whole.problems[0]?.subject], [false, "ctx"])
    }))

  planned(`says that blocks for multi-token prediction are kept aside, and does not count them${why}`, () =>
    Effect.gen(function*() {
      const path = "test/fixtures/golden/qwen35-mtp/model-q8_0.gguf"
      const found = yield* report(path, { contextLength: 256 })
      assert.strictEqual(found.prediction_blocks, 1)
      assert.include(ModelReport.reportLines(found).join("\n"), "multi-token prediction, 1 block, kept aside")
      const { tensorBytes } = yield* GgufMetadata.read(path)
      assert.isBelow(found.memory?.weights ?? Infinity, tensorBytes)
    }))

  it.live("of a split model is told from all of its parts", () =>
    Effect.gen(function*() {
      const name = readdirSync("test/fixtures/golden/split").find((file) => file.includes("00001-of-"))
      assert.isDefined(name)
      const found = yield* report(`test/fixtures/golden/split/${name}`)
      assert.isAbove(found.parts, 1)
      assert.strictEqual(found.tensors.count, (yield* GgufMetadata.read(`test/fixtures/golden/split/${name}`)).tensors.length)
    }))
})

describe("what would not work", () => {
  const named = (model: string, subject: string, changes: Partial<ModelReport.ReportOptions> = {}) =>
    Effect.map(report(model, changes), ({ problems }) => {
      const found = problems.find((problem) => problem.subject === subject)
      assert.isDefined(found, JSON.stringify(problems))
      assert.notInclude(found?.message, "\n")
    })

  it.live("is named by its key: pre-tokenizer, template, kind of tokenizer, sampling", () =>
    Effect.gen(function*() {
      yield* named(broken("pre-unknown"), "tokenizer.ggml.pre")
      yield* named(broken("template-not-jinja"), "tokenizer.chat_template")
      yield* named(broken("template-endless"), "tokenizer.chat_template")
      const path = join(folder, "sampling.gguf")
      writeFileSync(path, withKeys(readFileSync(demo), { "general.sampling.temp": { f32: -3 } }))
      yield* named(path, "general.sampling.temp")
      const index: { readonly cases: ReadonlyArray<{ readonly file: string; readonly name: string | null }> } = JSON.parse(
        readFileSync("test/fixtures/golden/broken/index.json", "utf8")
      )
      const kind = index.cases.find(({ name }) => name === "tokenizer.ggml.model")
      if (kind !== undefined) yield* named(`test/fixtures/golden/broken/${kind.file}`, "tokenizer.ggml.model")
    }))

  it.live("is not what the catalog mends", () =>
    Effect.gen(function*() {
      const entry = {
        id: "mine",
        file: "",
        aliases: [],
        chatTemplate: "{% for m in messages %}{{ m.content }}{% endfor %}",
        toolSyntax: "mistral",
        reasoning: undefined,
        preTokenizer: undefined,
        sampling: { topK: 3 }
      }
      const found = yield* report(broken("template-not-jinja"), { catalogEntry: entry })
      assert.isUndefined(found.problems.find(({ subject }) => subject === "tokenizer.chat_template"))
      assert.deepEqual([found.id, found.chat?.template, found.sampling], ["mine", "catalog", { top_k: 3 }])
    }))

  planned(`is named by the engine: families and tensors${why}`, () =>
    Effect.gen(function*() {
      yield* named(broken("architecture-unknown"), "general.architecture")
      yield* named(broken("type-iq1_s"), (yield* report(broken("type-iq1_s"))).problems[0]?.subject ?? "")
      const missing = yield* report(broken("tensor-missing"))
      assert.match(missing.problems[0]?.message ?? "", /missing/)
      assert.isNull(missing.memory)
    }))

  it.live("of every broken file is an error or a report, and the report has lines", () =>
    Effect.gen(function*() {
      let errors = 0
      const files = readdirSync("test/fixtures/golden/broken").filter((name) => name.endsWith(".gguf"))
      for (const file of files) {
        const outcome = yield* Effect.result(GgufMetadata.inspect(`test/fixtures/golden/broken/${file}`))
        if (Result.isSuccess(outcome)) continue
        errors++
        assert.strictEqual(outcome.failure._tag, "ModelError", file)
      }
      assert.isAbove(errors, 60)
      assert.isAbove(files.length - errors, 30)
    }))
})

describe("the command", () => {
  it.live("prints lines for people and JSON for programs", () =>
    Effect.gen(function*() {
      const lines = yield* run([demo])
      for (const word of ["qwen3", "5.77 M", "Q8_0", "131072 tokens", "hermes", "<|im_end|>"]) assert.include(lines.stdout, word)
      const json = yield* run([demo, "--json"])
      assert.deepInclude(JSON.parse(json.stdout), { id: "mashbox-demo", parts: 1 })
      assert.deepEqual([lines.code, json.code], canPlan ? [0, 0] : [1, 1])
    }))

  it.live("ends with status 1 and the reason where something would not work, is unreadable, or not there", () =>
    Effect.gen(function*() {
      const template = yield* run([broken("template-not-jinja"), "--json"])
      assert.strictEqual(template.code, 1)
      assert.include(JSON.stringify(JSON.parse(template.stdout).problems), "tokenizer.chat_template")
      for (
        const [model, expected] of [[broken("key-twice"), /twice/], [broken("html"), /magic/], ["nowhere.gguf", /nowhere\.gguf/]] as const
      ) {
        const ended = yield* run([model])
        assert.strictEqual(ended.code, 1, model)
        assert.match(ended.stderr, expected)
        assert.notInclude(ended.stderr, "internal error")
      }
      assert.match((yield* run([demo, "--slots", "0"])).stderr, /--slots/)
    }))
})
