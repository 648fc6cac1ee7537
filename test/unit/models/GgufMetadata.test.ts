import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { ModelError } from "../../../src/domain/Errors.ts"
import * as GgufMetadata from "../../../src/models/GgufMetadata.ts"
import type { ModelMetadata } from "../../../src/models/ModelMetadata.ts"
import { PromptEncoder } from "../../../src/tokenizer/PromptEncoder.ts"

const golden = "test/fixtures/golden"

const read = (path: string): Result.Result<ModelMetadata, ModelError> => Effect.runSync(Effect.result(GgufMetadata.read(path)))

const readOk = (path: string): ModelMetadata => Result.getOrThrow(read(path))

interface BrokenCase {
  readonly file: string
  readonly wrong: string
  readonly expect: ReadonlyArray<string>
  readonly name: string | null
}

/** Faults that only a look at the engine's configuration or at the tensors' meaning can find; the native loader's own tests cover them. */
const nativeOnly = new Set([
  "tensor-count-zero.gguf",
  "type-i32.gguf",
  "type-q8_1.gguf",
  "type-iq1_s.gguf",
  "missing-block_count.gguf",
  "missing-embedding_length.gguf",
  "missing-feed_forward_length.gguf",
  "missing-head_count.gguf",
  "missing-layer_norm_rms_epsilon.gguf",
  "missing-head_count_kv.gguf",
  "wrong-type-block_count.gguf",
  "wrong-type-epsilon.gguf",
  "wrong-type-head_count.gguf",
  "negative-block_count.gguf",
  "head_count-0.gguf",
  "head_count_kv-0.gguf",
  "head_count_kv-3.gguf",
  "head_count-array-short.gguf",
  "head_count-2p31.gguf",
  "block_count-2.gguf",
  "block_count-0.gguf",
  "block_count-2p32-1.gguf",
  "embedding_length-64.gguf",
  "embedding_length-0.gguf",
  "feed_forward_length-96.gguf",
  "key_length-0.gguf",
  "key_length-17.gguf",
  "rope-dimension_count-64.gguf",
  "rope-dimension_count-7.gguf",
  "rope-freq_base-nan.gguf",
  "rope-freq_base-0.gguf",
  "epsilon-negative.gguf",
  "epsilon-nan.gguf",
  "architecture-unknown.gguf",
  "architecture-llama.gguf",
  "tensor-missing.gguf",
  "tensor-missing-layer.gguf",
  "tensor-transposed.gguf",
  "tensor-extra-dim.gguf"
])

const classes: Record<ModelError["reason"], string> = {
  NotFound: "invalid",
  Truncated: "truncated",
  Invalid: "invalid",
  Unsupported: "unsupported",
  Inconsistent: "inconsistent"
}

describe("broken files", () => {
  const index: { readonly cases: ReadonlyArray<BrokenCase> } = JSON.parse(readFileSync(`${golden}/broken/index.json`, "utf8"))

  it("have a class each", () => {
    assert.isAbove(index.cases.length, 140)
    for (const name of nativeOnly) assert.isTrue(index.cases.some((one) => one.file === name), name)
  })

  for (const { expect, file, name, wrong } of index.cases) {
    it(`${file}: ${wrong}`, () => {
      const result = Result.flatMap(read(`${golden}/broken/${file}`), ({ vocabulary }) => PromptEncoder.make(vocabulary))
      if (nativeOnly.has(file)) {
        assert.isTrue(Result.isSuccess(result))
        return
      }
      if (Result.isSuccess(result)) {
        assert.include(expect, "ok")
        return
      }
      const { message, reason, subject } = result.failure
      assert.include(expect, classes[reason])
      assert.match(message, /^[^\p{Cc}]+$/u)
      if (name !== null && name.length > 1) assert.include(`${subject ?? ""} ${message}`, name)
    })
  }
})

describe("a model", () => {
  it("is described by its header", () => {
    const model = readOk("models/mashbox-demo.gguf")
    const { vocabulary } = model
    assert.deepEqual(
      { ...model, vocabulary: undefined, chatTemplate: undefined, tensors: model.tensors.length },
      {
        path: "models/mashbox-demo.gguf",
        id: "mashbox-demo",
        architecture: "qwen3",
        fileBytes: 6_275_648,
        tensorBytes: model.tensorBytes,
        parameters: model.parameters,
        contextLength: 131_072,
        vocabulary: undefined,
        chatTemplate: undefined,
        sampling: {},
        parts: 1,
        tensors: 68
      }
    )
    assert.deepInclude(model.tensors, { name: "blk.5.attn_norm.weight", type: "F32", elements: 256, bytes: 1024 })
    assert.approximately(model.parameters, 5.8e6, 0.1e6)
    assert.isBelow(model.tensorBytes, model.fileBytes)
    assert.isAbove(model.tensorBytes, model.parameters)
    assert.include(model.chatTemplate ?? "", "<|im_start|>")
    assert.deepEqual([vocabulary.tokens.length, vocabulary.types.length, vocabulary.merges.length], [4096, 4096, 3831])
    assert.deepEqual([vocabulary.model, vocabulary.pre, vocabulary.bosId, vocabulary.eosId, vocabulary.addBos], [
      "gpt2",
      "qwen2",
      4087,
      4089,
      false
    ])
    assert.deepEqual([vocabulary.eotId, vocabulary.eomId, vocabulary.unknownId, vocabulary.addSpacePrefix], [
      undefined,
      undefined,
      undefined,
      undefined
    ])
  })

  it("in three parts is the sum of its parts", () => {
    const whole = readOk(`${golden}/qwen3/model-q8_0.gguf`)
    for (const name of ["qwen3", "qwen3-meta-first"]) {
      const split = readOk(`${golden}/split/${name}-00001-of-00003.gguf`)
      assert.deepEqual([split.parameters, split.tensorBytes], [whole.parameters, whole.tensorBytes])
      assert.isAbove(split.fileBytes, split.tensorBytes)
    }
  })

  it("in parts is opened by its first part, under its own name, and with all parts there", () => {
    const second = read(`${golden}/split/qwen3-00002-of-00003.gguf`)
    assert.isTrue(Result.isFailure(second))
    const folder = mkdtempSync(join(tmpdir(), "mashbox-split-"))
    try {
      const part = (number: number) => readFileSync(`${golden}/split/qwen3-0000${number}-of-00003.gguf`)
      const failure = (name: string) => Result.getOrThrow(Result.flip(read(join(folder, name))))
      writeFileSync(join(folder, "renamed.gguf"), part(1))
      assert.include(failure("renamed.gguf").message, "model-00001-of-00003.gguf")
      writeFileSync(join(folder, "m-00001-of-00003.gguf"), part(1))
      writeFileSync(join(folder, "m-00002-of-00003.gguf"), part(2))
      assert.include(failure("m-00001-of-00003.gguf").message, "m-00003-of-00003.gguf is missing")
      writeFileSync(join(folder, "m-00003-of-00003.gguf"), part(2))
      assert.strictEqual(failure("m-00001-of-00003.gguf").subject, "split.no")
      writeFileSync(join(folder, "m-00003-of-00003.gguf"), part(3).subarray(0, -1))
      assert.strictEqual(failure("m-00001-of-00003.gguf").reason, "Truncated")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("needs a regular file, and a FIFO does not block", () => {
    const folder = mkdtempSync(join(tmpdir(), "mashbox-fifo-"))
    try {
      execFileSync("mkfifo", [join(folder, "model.gguf")])
      for (const path of [join(folder, "model.gguf"), folder, join(folder, "absent.gguf")]) {
        assert.strictEqual(Result.getOrThrow(Result.flip(read(path))).reason, "NotFound")
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("without a usable general.name is called after its file", () => {
    const folder = mkdtempSync(join(tmpdir(), "mashbox-name-"))
    try {
      const bytes = readFileSync(`${golden}/broken/base.gguf`)
      const at = bytes.indexOf("general.name")
      assert.isAbove(at, 0)
      const length = Number(bytes.readBigUInt64LE(at + 16))
      bytes.fill("/", at + 24, at + 24 + length)
      writeFileSync(join(folder, "My model (v2).GGUF"), bytes)
      assert.strictEqual(readOk(join(folder, "My model (v2).GGUF")).id, "My-model-v2")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("of 150 000 tokens is read too", (context) => {
    const path = "../shared/golden/tokenizer/real/qwen2.gguf"
    if (!existsSync(path)) return context.skip("no real vocabularies here")
    const { vocabulary } = readOk(path)
    assert.isAbove(vocabulary.tokens.length, 150_000)
    assert.isAbove(vocabulary.merges.length, 150_000)
  })
})

describe("every cut of a file", () => {
  it("is Truncated", () => {
    const bytes = readFileSync(`${golden}/broken/base.gguf`)
    const folder = mkdtempSync(join(tmpdir(), "mashbox-cut-"))
    const path = join(folder, "cut.gguf")
    try {
      for (let length = 0; length < bytes.length; length += length < 9_000 ? 7 : 601) {
        writeFileSync(path, bytes.subarray(0, length))
        const failure = Result.getOrThrow(Result.flip(read(path)))
        assert.strictEqual(failure.reason, "Truncated", `${length} bytes: ${failure.message}`)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("and every flipped byte gives a model or a ModelError", () => {
    const bytes = readFileSync(`${golden}/broken/base.gguf`)
    const folder = mkdtempSync(join(tmpdir(), "mashbox-flip-"))
    const path = join(folder, "flip.gguf")
    try {
      for (let at = 0; at < bytes.length; at += at < 9_000 ? 5 : 997) {
        for (const mask of [0x80, 0xff]) {
          const flipped = Buffer.from(bytes)
          flipped[at] = (flipped[at] ?? 0) ^ mask
          writeFileSync(path, flipped)
          const result = read(path)
          if (Result.isFailure(result)) assert.strictEqual(result.failure._tag, "ModelError")
        }
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
