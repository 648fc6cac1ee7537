import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import type { Conversation, Message } from "../../../src/domain/Conversation.ts"
import { ChatRenderer } from "../../../src/prompt/ChatRenderer.ts"
import { field, hasShared, load, shared, text } from "./golden.ts"

/**
 * Lost: the text beside a call in Mistral's templates, which print only the call and allow no second assistant message, and in gpt-oss's, which
 * takes it for reasoning and leaves it out once the turn is over; both as their makers intend.
 */
const templates: ReadonlyArray<readonly [name: string, lost: ReadonlyArray<string>, refused: ReadonlyArray<string>]> = [
  ["GLM-4.6", [], []],
  ["GLM-4.7-Flash", [], []],
  ["HuggingFaceTB-SmolLM3-3B", [], ["tools"]],
  ["Mistral-Small-3.2-24B-Instruct-2506", ["calls: CALLTEXT", "chain: CALLTEXT"], []],
  ["NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", [], []],
  ["NousResearch-Hermes-3-Llama-3.1-8B-tool_use", [], []],
  ["Qwen-QwQ-32B", [], []],
  ["Qwen-Qwen2.5-7B-Instruct", [], []],
  ["Qwen-Qwen3-0.6B", [], []],
  ["Qwen3-Coder", [], []],
  ["Qwen3.5-4B", [], []],
  ["SmolLM2-135M-Instruct", [], ["tools"]],
  ["deepseek-ai-DeepSeek-R1-Distill-Llama-8B", [], ["tools"]],
  ["deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", [], ["tools"]],
  ["deepseek-ai-DeepSeek-V3.1", [], ["tools"]],
  ["deepseek-ai-DeepSeek-V3.2", [], []],
  ["google-gemma-2-2b-it", [], ["tools"]],
  ["google-gemma-4-31B-it-interleaved", [], []],
  ["google-gemma-4-31B-it", [], []],
  ["llama-cpp-deepseek-r1", [], []],
  ["meta-llama-Llama-3.1-8B-Instruct", [], []],
  ["meta-llama-Llama-3.2-3B-Instruct", [], []],
  ["meta-llama-Llama-3.3-70B-Instruct", [], []],
  ["mistralai-Ministral-3-14B-Reasoning-2512", [], []],
  ["mistralai-Mistral-Nemo-Instruct-2407", ["calls: CALLTEXT", "chain: CALLTEXT"], []],
  ["openai-gpt-oss-120b", ["calls: CALLTEXT"], []],
  ["poolside-Laguna-S-2.1", [], []],
  ["poolside-Laguna-XS-2.1", [], []],
  ["poolside-Laguna-XS.2", [], []],
  ["unsloth-mistral-Devstral-Small-2507", [], []]
]

const tool = { name: "TOOLNAME", parameters: { type: "object", properties: { TOOLKEY: { type: "string", description: "TOOLTEXT" } } } }
const user = (content: string): Message => ({ role: "user", content })
const answer = (content: string): Message => ({ role: "assistant", content })
const call = (id: string) => ({ id, name: `${id}NAME`, arguments: `{"${id}KEY": ["${id}VALUE", 1]}` })
const result = (toolCallId: string): Message => ({ role: "tool", toolCallId, content: `${toolCallId}RESULT` })

const conversations: Readonly<Record<string, Conversation>> = {
  plain: { messages: [user("FIRST"), answer("SECOND"), user("THIRD")], tools: [], templateVariables: {} },
  instructions: {
    messages: [
      { role: "developer", content: "DEVELOPER" },
      { role: "system", content: "SYSTEM" },
      user("FIRST"),
      answer("SECOND"),
      { role: "system", content: "LATE" },
      user("THIRD")
    ],
    tools: [],
    templateVariables: {}
  },
  tools: { messages: [user("FIRST")], tools: [tool], templateVariables: {} },
  calls: {
    messages: [
      user("FIRST"),
      { role: "assistant", content: "CALLTEXT", toolCalls: [call("ONE"), call("TWO")] },
      result("ONE"),
      result("TWO"),
      answer("SECOND"),
      user("THIRD")
    ],
    tools: [],
    templateVariables: {}
  },
  chain: {
    messages: [
      user("FIRST"),
      { role: "assistant", content: "CALLTEXT", reasoning: "WHY", toolCalls: [call("ONE")] },
      result("ONE"),
      { role: "assistant", content: null, toolCalls: [call("TWO")] },
      result("TWO")
    ],
    tools: [],
    templateVariables: {}
  }
}

/** Texts that have to be in the prompt: those in capitals, but reasoning, which many models are not shown again. */
const expected = (conversation: Conversation): ReadonlySet<string> =>
  new Set((JSON.stringify(conversation).match(/[A-Z]{3,}/g) ?? []).filter((word) => word !== "WHY"))

describe("no text of a conversation is lost without an error", () => {
  for (const [name, lost, refused] of templates) {
    const path = `${shared}/${name}.jinja`
    it.skipIf(!hasShared || !existsSync(path))(`${name}${hasShared ? "" : " (no ../shared/golden/templates)"}`, () => {
      const special = field(load(`${shared}/renders/${name}.json`), "special_tokens")
      const token = (which: string) => {
        const value = field(special, which)
        return value === undefined ? undefined : text(value)
      }
      const renderer = new ChatRenderer({
        template: readFileSync(path, "utf8"),
        bos: token("bos_token"),
        eos: token("eos_token"),
        specialTexts: []
      })
      const missing: Array<string> = []
      const failed: Array<string> = []
      for (const [kind, conversation] of Object.entries(conversations)) {
        try {
          const prompt = renderer.render(conversation, 0)
          for (const word of expected(conversation)) if (!prompt.text.includes(word)) missing.push(`${kind}: ${word}`)
        } catch (cause) {
          failed.push(kind)
          assert.match(String(cause), /no place for tools/, kind)
        }
      }
      assert.deepStrictEqual([missing, failed], [Array.from(lost), Array.from(refused)])
    })
  }
})
