import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { decode } from "../../../src/dialect/OpenAiChat.ts"
import { parse } from "../../../src/dialect/WireRequest.ts"
import type { Conversation, Message } from "../../../src/domain/Conversation.ts"
import { ChatRenderer } from "../../../src/prompt/ChatRenderer.ts"
import { committed, field, goldenNow, hasShared, load, shared, text } from "./golden.ts"

interface Case {
  readonly id: string
  readonly messages: ReadonlyArray<Record<string, unknown>>
  readonly tools?: ReadonlyArray<unknown>
  readonly vars: Readonly<Record<string, unknown>>
  readonly continue_final_message?: boolean
}

const cases: ReadonlyArray<Case> = JSON.parse(readFileSync(`${committed}/cases.json`, "utf8"))

const body = ({ continue_final_message, messages, tools, vars }: Case) => {
  const { add_generation_prompt, reasoning_effort, ...kwargs } = vars
  return {
    messages: messages.map((message) => {
      const calls = message["tool_calls"]
      if (!Array.isArray(calls)) return message
      return {
        ...message,
        tool_calls: calls.map((call) => ({
          ...call,
          function: {
            ...call.function,
            arguments: typeof call.function.arguments === "string" ? call.function.arguments : JSON.stringify(call.function.arguments)
          }
        }))
      }
    }),
    ...(tools === undefined ? {} : { tools }),
    ...(reasoning_effort === undefined ? {} : { reasoning_effort }),
    chat_template_kwargs: kwargs,
    add_generation_prompt,
    ...(continue_final_message === true ? { continue_final_message } : {})
  }
}

/** What the server makes of a case, or the field that it blames. */
const conversationOf = (one: Case): Conversation | string => {
  const wire = Result.getOrThrow(parse(JSON.stringify(body(one))))
  const decoded = decode(wire, { tenant: "", session: undefined, randomSeed: 0 })
  return Result.isSuccess(decoded) ? decoded.success.request.prompt.conversation : `${decoded.failure.field}`
}

/** How a template may write a text: as it is, or inside JSON. */
const isShown = (prompt: string, text: string): boolean => {
  const trimmed = text.trim()
  return prompt.includes(trimmed) || prompt.includes(JSON.stringify(trimmed).slice(1, -1))
}

const strings = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" ? [value] : typeof value === "object" && value !== null ? Object.values(value).flatMap(strings) : []

const keysOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : []

const callTexts = (message: Message): ReadonlyArray<string> => {
  if (message.role !== "assistant") return []
  return (message.toolCalls ?? []).flatMap(({ arguments: source, name }) => {
    const values: unknown = source.trim() === "" ? {} : JSON.parse(source)
    return [name, ...keysOf(values), ...strings(values)]
  })
}

/** Reasoning that came back inside a text; templates show it as such, or not at all once the turn is over. */
const withoutReasoning = (text: string): string => text.replace(/^\s*<think>[^]*?<\/think>/, "")

/** Messages of a conversation of which the prompt does not show every text. */
const lost = (conversation: Conversation, prompt: string): ReadonlyArray<number> =>
  conversation.messages.flatMap((message, index) => {
    const texts = [withoutReasoning(message.content ?? ""), ...callTexts(message)]
    return texts.every((one) => isShown(prompt, one)) ? [] : [index]
  })

/** What no template gets: the dialect blames the field. */
const refusedByField: Readonly<Record<string, string>> = {
  "image-part": "messages.0.content.0",
  "no-messages": "messages",
  "role-unknown": "messages.1.role"
}

interface Exceptions {
  readonly lost?: Readonly<Record<string, ReadonlyArray<number>>>
  readonly refused?: Readonly<Record<string, RegExp>>
  /** The template has no place for tools; every case that offers some is refused by that name. */
  readonly noTools?: true
  readonly why: string
}

/** Mistral's makers leave out the text beside a call, and allow no message of its own for it. */
const besideCalls = {
  "call-content": [1],
  "call-chain": [1, 3],
  "reasoning-call-old": [1],
  "indent-reasoning-call": [1]
}

const alternate = { "assistant-first": /^messages\.0: .*roles must alternate/ }

const exceptions: Readonly<Record<string, Exceptions>> = {
  "HuggingFaceTB-SmolLM3-3B": {
    noTools: true,
    lost: { "no-think-command": [0] },
    why: "takes /no_think out of the system text and acts on it"
  },
  "Mistral-Small-3.2-24B-Instruct-2506": {
    lost: besideCalls,
    refused: alternate,
    why: "text beside calls; a conversation begins with the user"
  },
  "mistralai-Mistral-Nemo-Instruct-2407": {
    lost: besideCalls,
    refused: alternate,
    why: "text beside calls; a conversation begins with the user"
  },
  "mistralai-Ministral-3-14B-Reasoning-2512": {
    refused: { ...alternate, "continue-reasoning": /^messages\.1: Assistant message must have/ },
    why: "a conversation begins with the user; no answer of nothing but reasoning"
  },
  "google-gemma-2-2b-it": { noTools: true, refused: alternate, why: "a conversation begins with the user" },
  "Qwen3.5-4B": { refused: { "system-only": /^messages\.0: No user query found/ }, why: "a conversation has a user" },
  "openai-gpt-oss-120b": {
    lost: { "reasoning-call-old": [1] },
    why: "takes text beside a call for reasoning, which it leaves out once the turn is over"
  },
  "SmolLM2-135M-Instruct": { noTools: true, why: "made without tools" },
  "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": { noTools: true, why: "made without tools" },
  "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": { noTools: true, why: "shows calls but no tools" },
  "deepseek-ai-DeepSeek-V3.1": { noTools: true, why: "shows calls but no tools" }
}

describe("every case through preparation and template", () => {
  const names = hasShared ? readdirSync(shared).filter((name) => name.endsWith(".jinja")).map((name) => name.slice(0, -6)) : []

  it("names all templates of the folder", (context) => {
    if (!hasShared) context.skip("no ../shared/golden/templates")
    assert.strictEqual(names.length, 30)
    for (const name of Object.keys(exceptions)) assert.include(names, name)
  })

  it("blames the field for what no template gets", () => {
    const refused = cases.flatMap((one) => {
      const conversation = conversationOf(one)
      return typeof conversation === "string" ? [[one.id, conversation]] : []
    })
    assert.deepEqual(Object.fromEntries(refused), refusedByField)
    assert.strictEqual(cases.length, 76)
  })

  for (const name of names) {
    it(name, () => {
      const special = field(load(`${shared}/renders/${name}.json`), "special_tokens")
      const token = (which: string) => {
        const value = field(special, which)
        return value === undefined ? undefined : text(value)
      }
      const renderer = new ChatRenderer({
        template: readFileSync(`${shared}/${name}.jinja`, "utf8"),
        bos: token("bos_token"),
        eos: token("eos_token"),
        specialTexts: []
      })
      const { lost: mayLose = {}, noTools = false, refused = {} } = exceptions[name] ?? {}
      const losses: Record<string, ReadonlyArray<number>> = {}
      const refusals: Record<string, string> = {}
      for (const one of cases) {
        const conversation = conversationOf(one)
        if (typeof conversation === "string") continue
        try {
          const missing = lost(conversation, renderer.render(conversation, goldenNow).text)
          if (missing.length > 0) losses[one.id] = missing
        } catch (cause) {
          const message = cause instanceof Error ? cause.message : ""
          if (noTools && conversation.tools.length > 0) {
            assert.strictEqual(message, "tools: the model's chat template has no place for tools")
          } else refusals[one.id] = message
        }
      }
      assert.deepEqual(losses, mayLose)
      assert.sameMembers(Object.keys(refusals), Object.keys(refused))
      for (const [id, expected] of Object.entries(refused)) assert.match(refusals[id] ?? "", expected)
    })
  }
})
