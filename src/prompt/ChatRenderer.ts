import type { Conversation, Message } from "../domain/Conversation.ts"
import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"
import { arrange } from "./Arrangement.ts"
import { chatMl } from "./ChatMl.ts"
import { messageLength } from "./ConversationLength.ts"
import { globals } from "./jinja/Globals.ts"
import { JinjaTemplate } from "./jinja/JinjaTemplate.ts"
import { fromData } from "./jinja/Json.ts"
import { type Text, textOf } from "./jinja/MarkedText.ts"
import { BudgetError, Protection } from "./jinja/Run.ts"
import { JinjaError, type Value } from "./jinja/Values.ts"
import type { Preparation } from "./Preparation.ts"
import { probe } from "./Probe.ts"
import { probeReasoning, type ReasoningFormat, type ReasoningTags } from "./Reasoning.ts"
import { messageValue, toolValues } from "./TemplateInput.ts"

export interface TemplateSource {
  /** Jinja text of the model; undefined where the file has none. */
  readonly template: string | undefined
  readonly bos: string | undefined
  readonly eos: string | undefined
  /** Texts of the vocabulary's special tokens. */
  readonly specialTexts: ReadonlyArray<string>
  /** What stands around reasoning; absent: what the template shows. */
  readonly reasoningTags?: ReasoningTags
}

interface Budget {
  readonly steps: number
  readonly textLength: number
}

const probeBudget: Budget = { steps: 200_000, textLength: 4_000_000 }

/** Some tags that reasoning templates cut messages at, in case they are not tokens of the vocabulary. */
const reasoningTags = ["<think>", "</think>"]

const reserved: ReadonlySet<string> = new Set([
  ...globals.keys(),
  "messages",
  "tools",
  "documents",
  "loop",
  "bos_token",
  "eos_token",
  "add_generation_prompt"
])

const templateOf = ({ specialTexts, template }: TemplateSource): string => {
  if (template !== undefined) return template
  if (specialTexts.includes("<|im_start|>") && specialTexts.includes("<|im_end|>")) return chatMl
  throw new JinjaError("the model has no chat template")
}

/** What a render may use: far more than any real template needs for an input of this size. */
const budget = ({ messages, tools }: Conversation): Budget => {
  const length = messages.reduce((total, message) => total + messageLength(message), 0)
  return { steps: 2_000_000 + 20_000 * (messages.length + tools.length) + length, textLength: 64_000_000 + 200 * length }
}

const ranges = (text: Text): RenderedPrompt["untrusted"] => {
  if (typeof text === "string") return []
  const { marks } = text
  return Array.from({ length: marks.length / 2 }, (_, index) => [marks[2 * index] ?? 0, marks[2 * index + 1] ?? 0] as const)
}

/** Why a conversation is not rendered, in one line. */
export const refusal = (cause: unknown): string => cause instanceof JinjaError ? cause.message : "the chat template failed"

/** Renders conversations with one model's template. Its methods throw a JinjaError with a message of one line. */
export class ChatRenderer {
  readonly preparation: Preparation
  readonly reasoning: ReasoningFormat
  readonly #template: JinjaTemplate
  readonly #protection: Protection
  readonly #tokens: ReadonlyArray<readonly [string, Value]>

  constructor(source: TemplateSource) {
    this.#template = new JinjaTemplate(templateOf(source))
    this.#protection = new Protection([...reasoningTags, ...source.specialTexts.filter((text) => text.length > 1)])
    this.#tokens = [["bos_token", source.bos], ["eos_token", source.eos]].flatMap(([name, text]) =>
      name === undefined || text === undefined ? [] : [[name, text] as const]
    )
    this.preparation = probe((messages, tools) => {
      try {
        return textOf(this.#run(messages, tools, [], 0, probeBudget))
      } catch (cause) {
        if (cause instanceof BudgetError) throw cause
        return undefined
      }
    })
    const { reasoningTags: own } = source
    const shown = probeReasoning((conversation) => {
      try {
        return this.render(conversation, 0).text
      } catch (cause) {
        if (cause instanceof BudgetError) throw cause
        return undefined
      }
    })
    this.reasoning = own === undefined ? shown : { ...shown, tags: [own, ...shown.tags.filter(([open]) => open !== own[0])] }
    // A template that takes not even this can take nothing.
    this.render({ messages: [{ role: "user", content: "mbxuser" }], tools: [], templateVariables: {} }, 0)
  }

  /** `now` in milliseconds since the epoch. */
  render(conversation: Conversation, now: number): RenderedPrompt {
    if (conversation.messages.length === 0) throw new JinjaError("messages: there are none")
    if (conversation.tools.length > 0 && !this.preparation.tools) {
      throw new JinjaError("tools: the model's chat template has no place for tools")
    }
    const variables = Object.entries(conversation.templateVariables).map(([name, value]) => {
      if (reserved.has(name)) throw new JinjaError(`the template variable '${name}' cannot be set`)
      return [name, fromData(value, true)] as const
    })
    const tools = toolValues(conversation.tools, this.preparation)
    const drafts = arrange(conversation.messages, this.preparation)
    const messages = drafts.map((draft) => messageValue(draft, this.preparation))
    const limits = budget(conversation)
    const { ending = "answer" } = conversation
    try {
      const text = this.#run(messages, tools, variables, now, limits, ending === "answer")
      const rendered = { text: textOf(text), untrusted: ranges(text) }
      return ending === "open_message" ? leftOpen(rendered, conversation.messages.at(-1)) : rendered
    } catch (cause) {
      if (!(cause instanceof JinjaError) || cause instanceof BudgetError) throw cause
      const renders = (count: number, given = tools): boolean => {
        try {
          this.#run(messages.slice(0, count), given, variables, now, limits)
          return true
        } catch {
          return false
        }
      }
      if (conversation.tools.length > 0 && renders(messages.length, toolValues([], this.preparation))) {
        throw new JinjaError(`tools: ${cause.message}`)
      }
      throw new JinjaError(`messages.${drafts[firstRefused(messages.length, renders)]?.index ?? 0}: ${cause.message}`)
    }
  }

  #run(
    messages: ReadonlyArray<Value>,
    tools: Value,
    variables: ReadonlyArray<readonly [string, Value]>,
    now: number,
    limits: Budget,
    beginsAnswer = true
  ): Text {
    const given: ReadonlyArray<readonly [string, Value]> = [
      ...variables,
      ...this.#tokens,
      ["messages", Array.from(messages)],
      ["tools", tools],
      ["documents", null],
      ["add_generation_prompt", beginsAnswer]
    ]
    return this.#template.render(given, { ...limits, now, protection: this.#protection })
  }
}

/** The prompt up to the end of its last message's text, which is the last that did not come from the template. */
const leftOpen = ({ text, untrusted }: RenderedPrompt, last: Message | undefined): RenderedPrompt => {
  const whole = last?.content ?? ""
  const bound = untrusted.at(-1)?.[1] ?? 0
  const startOf = (content: string) => content === "" || content.length > bound ? -1 : text.lastIndexOf(content, bound - content.length)
  const content = startOf(whole) < 0 ? whole.trim() : whole
  const start = startOf(content)
  if (start < 0) throw new JinjaError("messages: the chat template does not show the last message as it is, so it cannot be continued")
  const end = start + content.length
  return {
    text: text.slice(0, end),
    untrusted: untrusted.flatMap(([from, to]) => from < end ? [[from, Math.min(to, end)] as const] : [])
  }
}

/** Index of the message that ends the longest run of messages that still renders; all `count` together do not. */
const firstRefused = (count: number, renders: (count: number) => boolean): number => {
  let accepted = 0
  let refused = count
  while (refused - accepted > 1) {
    const middle = (accepted + refused) >> 1
    if (renders(middle)) accepted = middle
    else refused = middle
  }
  return refused - 1
}
