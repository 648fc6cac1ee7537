import type { Conversation } from "../domain/Conversation.ts"
import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"

export type ReasoningTags = readonly [open: string, close: string]

/** How a model's output marks its reasoning. */
export interface ReasoningFormat {
  /** Pairs that may stand around reasoning, the one that the model's template shows first. */
  readonly tags: ReadonlyArray<ReasoningTags>
  /** What stands between the closing tag of the first pair and the answer. */
  readonly afterReasoning: string
  /** The template acts on the variable `reasoning_effort`. */
  readonly takesEffort: boolean
  /** A turn's text ends with a line break that is no part of it. */
  readonly turnEndsInBreak: boolean
}

/**
 * Where a prompt leaves the model: inside a reasoning block that ends with `closing`, right after one, or neither.
 */
export type ReasoningState = { readonly _tag: "Open"; readonly closing: string } | { readonly _tag: "Closed" } | { readonly _tag: "None" }

export const noReasoning: ReasoningState = { _tag: "None" }

const knownTags: ReadonlyArray<ReasoningTags> = [
  ["<think>", "</think>"],
  ["<seed:think>", "</seed:think>"],
  ["[THINK]", "[/THINK]"],
  ["<|channel>thought", "<channel|>"]
]

export const usualReasoning: ReasoningFormat = {
  tags: knownTags,
  afterReasoning: "\n\n",
  takesEffort: false,
  turnEndsInBreak: false
}

/** What the template itself wrote at the end of the prompt. */
const ownEnd = (prompt: RenderedPrompt): string => prompt.text.slice(prompt.untrusted.at(-1)?.[1] ?? 0)

/** Whether the template's own text at the end of the prompt opens a reasoning block, and whether it closes it again at the very end. */
export const reasoningState = (prompt: RenderedPrompt, format = usualReasoning): ReasoningState => {
  const own = ownEnd(prompt)
  const open = format.tags.find(([open, close]) => own.lastIndexOf(open) > own.lastIndexOf(close))
  if (open !== undefined) return { _tag: "Open", closing: open[1] }
  const end = own.trimEnd()
  return format.tags.some(([, close]) => end.endsWith(close)) ? { _tag: "Closed" } : noReasoning
}

export const startsInReasoning = (prompt: RenderedPrompt): boolean => reasoningState(prompt)._tag === "Open"

const user = { role: "user", content: "mbxuser" } as const
const reasoned = { role: "assistant", content: "mbxanswer", reasoning: "mbxreasoning" } as const
const tool = { name: "mbxtool", description: "mbxdescription", parameters: { type: "object", properties: { mbxkey: { type: "string" } } } }

/** Some templates show reasoning only of the last turn, or only while tools are called. */
const probes: ReadonlyArray<Conversation> = [
  { messages: [user, reasoned], tools: [], templateVariables: { enable_thinking: true }, ending: "message" },
  { messages: [user, reasoned, { role: "user", content: "mbxagain" }], tools: [], templateVariables: { enable_thinking: true } },
  {
    messages: [
      user,
      { ...reasoned, toolCalls: [{ id: "mbxid0001", name: tool.name, arguments: "{\"mbxkey\": \"mbxvalue\"}" }] },
      { role: "tool", toolCallId: "mbxid0001", name: tool.name, content: "mbxresult" }
    ],
    tools: [tool],
    templateVariables: { enable_thinking: true }
  }
]

interface Shown {
  readonly tags: ReasoningTags
  readonly after: string
}

const openAtEnd = /(<[^<>\s]{1,32}>\w*|\[[^[\]\s]{1,32}\])\s*$/
const closeAtStart = /^\s*(<[^<>\s]{1,32}>|\[[^[\]\s]{1,32}\])(\s{0,8})/

/** gpt-oss has channels with headers, no tags. */
const inChannel = (open: string): boolean => open === "<|message|>"

/** The tags around reasoning in a rendered conversation. */
const tagsIn = (text: string): Shown | undefined => {
  const from = text.indexOf("mbxuser")
  const at = text.indexOf("mbxreasoning", from)
  if (from < 0 || at < 0) return undefined
  const open = openAtEnd.exec(text.slice(from + "mbxuser".length, at))?.[1]
  const [, close, after = ""] = closeAtStart.exec(text.slice(at + "mbxreasoning".length)) ?? []
  return open === undefined || close === undefined || open === close || inChannel(open) ? undefined : { tags: [open, close], after }
}

/** Finds out how a template marks reasoning. `render` is undefined where the template refuses. */
export const probeReasoning = (render: (conversation: Conversation) => string | undefined): ReasoningFormat => {
  let own: Shown | undefined
  for (const probe of probes) own ??= tagsIn(render(probe) ?? "")
  const effort = (name: string) =>
    render({ messages: [user], tools: [], templateVariables: { enable_thinking: true, reasoning_effort: name } })
  const turns = render({
    messages: [user, { role: "assistant", content: "mbxanswer" }, { role: "user", content: "mbxagain" }],
    tools: [],
    templateVariables: {}
  })
  return {
    tags: own === undefined ? knownTags : [own.tags, ...knownTags.filter(([open]) => open !== own.tags[0])],
    afterReasoning: own?.after ?? usualReasoning.afterReasoning,
    takesEffort: effort("low") !== effort("high"),
    turnEndsInBreak: /mbxanswer\n[<[]/.test(turns ?? "")
  }
}
