import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { JinjaTemplate } from "../../../../src/prompt/jinja/JinjaTemplate.ts"
import { isMarked, type Text } from "../../../../src/prompt/jinja/MarkedText.ts"
import type { Value } from "../../../../src/prompt/jinja/Values.ts"
import { committed, field, hasShared, list, load, options, outcome, shared, text, variables } from "../golden.ts"

const folder = shared

/** Renders that differ from Python's, with the reason. Every one is an input that Python refuses. */
const knownDifferences: Readonly<Record<string, { readonly cases: ReadonlyArray<string> | "many"; readonly why: string }>> = {
  "deepseek-ai-DeepSeek-V3.2": { cases: ["call-string"], why: "from_json, a filter that llama.cpp has and Python lacks" },
  "llama-cpp-deepseek-r1": { cases: "many", why: "written for llama.cpp: `map(…)|tojson` writes a generator as JSON, which Python refuses" }
}

const templates = [
  "GLM-4.6",
  "GLM-4.7-Flash",
  "HuggingFaceTB-SmolLM3-3B",
  "Mistral-Small-3.2-24B-Instruct-2506",
  "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
  "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
  "Qwen-QwQ-32B",
  "Qwen-Qwen2.5-7B-Instruct",
  "Qwen-Qwen3-0.6B",
  "Qwen3-Coder",
  "Qwen3.5-4B",
  "SmolLM2-135M-Instruct",
  "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
  "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
  "deepseek-ai-DeepSeek-V3.1",
  "deepseek-ai-DeepSeek-V3.2",
  "google-gemma-2-2b-it",
  "google-gemma-4-31B-it-interleaved",
  "google-gemma-4-31B-it",
  "llama-cpp-deepseek-r1",
  "meta-llama-Llama-3.1-8B-Instruct",
  "meta-llama-Llama-3.2-3B-Instruct",
  "meta-llama-Llama-3.3-70B-Instruct",
  "mistralai-Ministral-3-14B-Reasoning-2512",
  "mistralai-Mistral-Nemo-Instruct-2407",
  "openai-gpt-oss-120b",
  "poolside-Laguna-S-2.1",
  "poolside-Laguna-XS-2.1",
  "poolside-Laguna-XS.2",
  "unsloth-mistral-Devstral-Small-2507"
]

const plainCases = new Map(list(load(`${committed}/cases.json`)).map((each) => [text(field(each, "id")), each]))
const markedCases = new Map(
  list(load(`${committed}/cases.json`, true)).map((each) => {
    const id = field(each, "id")
    return [typeof id === "object" && id !== null && "text" in id ? id.text : "", each]
  })
)

const given = (cases: ReadonlyMap<string, Value>, id: string, special: Value | undefined): Array<readonly [string, Value]> => [
  ["messages", field(cases.get(id), "messages") ?? null],
  ["tools", field(cases.get(id), "tools") ?? null],
  ["documents", null],
  ...variables(special),
  ...variables(field(cases.get(id), "vars"))
]

/** All texts of a value, keys included. */
const texts = (value: Value): Array<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(texts)
  if (typeof value === "object" && value !== null && "entries" in value) {
    return Array.from(value.entries, ([key, each]) => [String(key), ...texts(each)]).flat()
  }
  return []
}

describe("real templates against Python's renders", () => {
  it("names all templates of the folder", (context) => {
    if (!hasShared) context.skip("no ../shared/golden/templates")
    assert.deepStrictEqual(readdirSync(`${shared}/renders`).toSorted(), templates.map((name) => `${name}.json`).toSorted())
  })

  for (const name of templates) {
    const path = `${folder}/renders/${name}.json`
    const present = existsSync(path)
    it.skipIf(!present)(`${name}${present ? "" : " (no ../shared/golden/templates)"}`, () => {
      const golden = load(path)
      const special = field(golden, "special_tokens")
      const template = new JinjaTemplate(readFileSync(`${folder}/${name}.jinja`, "utf8"))
      const differing: Array<string> = []
      let compared = 0
      for (const each of list(field(golden, "renders"))) {
        const raw = field(each, "raw")
        if (raw === undefined) continue
        const id = text(field(each, "case"))
        compared++
        const expected = field(raw, "text")
        const got = outcome(() => template.render(given(plainCases, id, special), options))
        if (typeof got !== "string") assert.match(got.error, /^(JinjaError|BudgetError): [^\n]+$/)
        if (expected === undefined ? typeof got === "string" : got !== expected) {
          differing.push(id)
          assert.isUndefined(expected, `${id}: the text differs`)
        }

        let marked: Text = ""
        const withMarks = outcome(() => marked = template.render(given(markedCases, id, special), options))
        assert.deepStrictEqual(withMarks, got, `${id}: marks change the text`)
        if (typeof withMarks !== "string") continue
        for (const own of texts(field(plainCases.get(id), "messages") ?? null).map((each) => each.trim())) {
          if (own.length < 12) continue
          for (let at = withMarks.indexOf(own); at >= 0; at = withMarks.indexOf(own, at + 1)) {
            for (let i = at; i < at + own.length; i++) assert.isTrue(isMarked(marked, i, i + 1), `${id}: ${own}`)
          }
        }
        for (const [, value] of variables(special)) {
          const token = text(value)
          if (id === "special-text" || id === "reasoning-inline" || token === "") continue
          for (let at = withMarks.indexOf(token); at >= 0; at = withMarks.indexOf(token, at + 1)) {
            assert.isFalse(isMarked(marked, at, at + token.length), `${id}: the template's own ${token} is marked`)
          }
        }
      }
      assert.isAtLeast(compared, 71)
      const known = knownDifferences[name]
      if (known?.cases === "many") assert.strictEqual(differing.length, 35)
      else assert.deepStrictEqual(differing, known?.cases ?? [])
    })
  }
})
