import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { detectSyntax } from "../../../../src/generation/tools/detectSyntax.ts"
import { ChatTemplate } from "../../../../src/prompt/ChatTemplate.ts"

const folder = join(import.meta.dirname, "../../../../../shared/golden/templates")

const think = "<think></think>"

/** Which syntax and which reasoning tags a vendor's template shows, and whether its turns end in a line break. */
const shown: ReadonlyArray<readonly [file: string, syntax: string, tags: string, breaks?: boolean]> = [
  ["GLM-4.6", "arg-pairs", think],
  ["HuggingFaceTB-SmolLM3-3B", "hermes", think],
  ["Mistral-Small-3.2-24B-Instruct-2506", "mistral-args", think],
  ["NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes", think],
  ["Qwen-Qwen2.5-7B-Instruct", "hermes", think],
  ["Qwen-Qwen3-0.6B", "hermes", think],
  ["Qwen3-Coder", "qwen-xml", think],
  ["Qwen3.5-4B", "qwen-xml", think],
  ["SmolLM2-135M-Instruct", "hermes", think],
  ["deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek", think],
  ["deepseek-ai-DeepSeek-V3.1", "deepseek", think],
  ["deepseek-ai-DeepSeek-V3.2", "deepseek-dsml", think],
  ["llama-cpp-deepseek-r1", "deepseek", think],
  ["google-gemma-4-31B-it", "gemma4", "<|channel>thought<channel|>"],
  ["meta-llama-Llama-3.1-8B-Instruct", "llama3-json", think],
  ["meta-llama-Llama-3.2-3B-Instruct", "llama3-json", think],
  ["mistralai-Mistral-Nemo-Instruct-2407", "mistral-array", think],
  ["openai-gpt-oss-120b", "harmony", think],
  ["poolside-Laguna-S-2.1", "arg-pairs", think],
  ["poolside-Laguna-XS-2.1", "arg-pairs", think, true],
  ["unsloth-mistral-Devstral-Small-2507", "mistral-args", think]
]

describe("what a vendor's template shows of calls and reasoning", () => {
  for (const [file, syntax, tags, breaks = false] of shown) {
    const path = join(folder, `${file}.jinja`)
    const known = existsSync(path) ? it.effect : it.effect.skip
    known(`${file}: ${syntax}`, () =>
      Effect.gen(function*() {
        const template = yield* ChatTemplate.make({
          template: readFileSync(path, "utf8"),
          bos: "<s>",
          eos: "</s>",
          specialTexts: ["<think>", "</think>"]
        })
        assert.strictEqual((yield* detectSyntax(template)).syntax.name, syntax)
        assert.strictEqual(template.reasoning?.tags[0]?.join(""), tags)
        assert.strictEqual(template.reasoning?.turnEndsInBreak, breaks)
      }))
  }
})
