import type { Message } from "../domain/Conversation.ts"
import { concat, mark, type Text, textOf } from "./jinja/MarkedText.ts"
import type { Preparation } from "./Preparation.ts"

export type ToolCall = NonNullable<Extract<Message, { role: "assistant" }>["toolCalls"]>[number]

/** A message on its way to the template. `index` is its place in the conversation, for errors. */
export type Draft =
  & { readonly index: number }
  & (
    | { readonly role: "system" | "developer" | "user"; readonly content: Text; readonly name?: string }
    | {
      readonly role: "assistant"
      readonly content: Text | null
      readonly reasoning: string | undefined
      readonly calls: ReadonlyArray<ToolCall>
    }
    | { readonly role: "tool"; readonly id: string; readonly name: string | undefined; readonly content: Text }
  )

const inlineReasoning = /^\s*<think>([^]*?)<\/think>\s*/

const draft = (message: Message, index: number, { takesInlineReasoning }: Preparation): Draft => {
  switch (message.role) {
    case "assistant": {
      // An answer that came back with its reasoning in the text; the template sees no tags in a user's text, so they are cut here.
      const inline = takesInlineReasoning && message.reasoning === undefined ? inlineReasoning.exec(message.content ?? "") : null
      const content = inline === null ? message.content : (message.content ?? "").slice(inline[0].length)
      return {
        index,
        role: "assistant",
        content: content === null ? null : mark(content),
        reasoning: inline === null ? message.reasoning : inline[1]?.trim(),
        calls: message.toolCalls ?? []
      }
    }
    case "tool":
      return { index, role: "tool", id: message.toolCallId, name: message.name, content: mark(message.content) }
    default:
      return { index, role: message.role, content: mark(message.content), ...(message.name === undefined ? {} : { name: message.name }) }
  }
}

const isInstruction = (message: Draft): message is Extract<Draft, { role: "system" | "developer" | "user" }> =>
  message.role === "system" || message.role === "developer"

/** Texts with an empty line between them; those that are empty leave nothing. */
const joined = (...texts: ReadonlyArray<Text | null | undefined>): Text | undefined =>
  texts.flatMap((text) => text === null || text === undefined || text === "" ? [] : [text]).reduce<Text | undefined>(
    (left, right) => left === undefined ? right : concat(left, "\n\n", right),
    undefined
  )

const nowhere: Preparation["system"] = { leading: false, several: false, late: false, always: false }

/** Puts system messages where the template prints them: together, at the start, or into the first user message. */
const placeInstructions = (messages: ReadonlyArray<Draft>, preparation: Preparation): ReadonlyArray<Draft> => {
  const system = preparation.system.always || messages.at(-1)?.role === "user" ? preparation.system : nowhere
  const turns = messages.findIndex((message) => !isInstruction(message))
  const leading = turns < 0 ? messages.length : turns
  const moves = (message: Draft, at: number) =>
    isInstruction(message) && (at >= leading ? !system.late : !system.several || !system.leading)
  const moved = messages.filter(moves).filter(isInstruction)
  const kept = messages.filter((message, at) => !moves(message, at))
  const first = kept[0]
  if (moved.length === 0 || (moved.length === 1 && moved[0] === messages[0] && system.leading)) return messages
  const text = moved.map((message) => message.content)
  if (system.leading) {
    return first !== undefined && isInstruction(first)
      ? [{ ...first, content: joined(first.content, ...text) ?? "" }, ...kept.slice(1)]
      : [{ index: moved[0]?.index ?? 0, role: moved[0]?.role ?? "system", content: joined(...text) ?? "" }, ...kept]
  }
  const user = kept.findIndex((message) => message.role === "user")
  const target = kept[user]
  return target?.role === "user"
    ? kept.with(user, { ...target, content: joined(...text, target.content) ?? "" })
    : [{ index: moved[0]?.index ?? 0, role: "user", content: joined(...text) ?? "" }, ...kept]
}

/** One call per message, each followed by its result, for templates that take no parallel calls. */
const oneCallEach = (messages: ReadonlyArray<Draft>): ReadonlyArray<Draft> => {
  const result: Array<Draft> = []
  let at = 0
  while (at < messages.length) {
    const message = messages[at++]
    if (message === undefined) break
    if (message.role !== "assistant" || message.calls.length < 2) {
      result.push(message)
      continue
    }
    const answers: Array<Draft> = []
    for (let next = messages[at]; next?.role === "tool"; next = messages[++at]) answers.push(next)
    message.calls.forEach((call, index) => {
      result.push(
        index === 0 ? { ...message, calls: [call] } : { ...message, content: null, reasoning: undefined, calls: [call] },
        ...answers.filter((answer) => answer.role === "tool" && answer.id === call.id)
      )
    })
    const ids = new Set(message.calls.map((call) => call.id))
    result.push(...answers.filter((answer) => answer.role === "tool" && !ids.has(answer.id)))
  }
  return result
}

/** Results of which the conversation has no call before them. */
const orphansOf = (messages: ReadonlyArray<Draft>): ReadonlySet<Draft> => {
  const ids = new Set<string>()
  const orphans = new Set<Draft>()
  for (const message of messages) {
    if (message.role === "assistant") { for (const { id } of message.calls) ids.add(id) }
    else if (message.role === "tool" && !ids.has(message.id)) orphans.add(message)
  }
  return orphans
}

/** Tool results as user messages, each run of them one message with the user's own that follows, so that the turns still alternate. */
const resultsAsUser = (messages: ReadonlyArray<Draft>, becomes: (result: Draft) => boolean): ReadonlyArray<Draft> => {
  const result: Array<Draft> = []
  let open = false
  for (const message of messages) {
    const isResult = message.role === "tool" && becomes(message)
    const content = isResult ? concat("<tool_response>\n", message.content, "\n</tool_response>") : message.content
    const last = result.at(-1)
    if (open && last?.role === "user" && (isResult || message.role === "user") && content !== null) {
      result[result.length - 1] = { ...last, content: concat(last.content, "\n", content) }
    } else result.push(isResult ? { index: message.index, role: "user", content: content ?? "" } : message)
    open = isResult
  }
  return result
}

const isEmptyAnswer = (message: Draft): boolean =>
  message.role === "assistant" && message.calls.length === 0 && (message.content === null || message.content === "") &&
  (message.reasoning === undefined || message.reasoning === "")

/** Messages of one role in a row as one, for templates in which turns have to alternate. */
const oneMessageEach = (messages: ReadonlyArray<Draft>, { repeats }: Preparation): ReadonlyArray<Draft> => {
  const result: Array<Draft> = []
  for (const message of messages) {
    const last = result.at(-1)
    if (last?.role === "user" && message.role === "user" && !repeats.user) {
      result[result.length - 1] = { ...last, content: joined(last.content, message.content) ?? "" }
    } else if (last?.role === "assistant" && message.role === "assistant" && !repeats.assistant && last.calls.length === 0) {
      const reasoning = joined(last.reasoning, message.reasoning)
      result[result.length - 1] = {
        ...last,
        content: joined(last.content, message.content) ?? null,
        reasoning: reasoning === undefined ? undefined : textOf(reasoning),
        calls: message.calls
      }
    } else result.push(message)
  }
  return result
}

const textApartFromCalls = (message: Draft): ReadonlyArray<Draft> =>
  message.role === "assistant" && message.calls.length > 0 && message.content !== null && message.content !== ""
    ? [{ ...message, calls: [] }, { ...message, content: null, reasoning: undefined }]
    : [message]

/** Messages as the template can take them, but not yet as its values. */
export const arrange = (messages: ReadonlyArray<Message>, preparation: Preparation): ReadonlyArray<Draft> => {
  const names = new Map<string, string>()
  for (const message of messages) {
    if (message.role === "assistant") { for (const call of message.toolCalls ?? []) names.set(call.id, call.name) }
  }
  let drafts: ReadonlyArray<Draft> = messages.map((message, index): Draft => {
    const drafted = draft(message, index, preparation)
    if (drafted.role === "tool") return { ...drafted, name: drafted.name ?? names.get(drafted.id) }
    return drafted.role === "developer" && !preparation.developer ? { ...drafted, role: "system" } : drafted
  })
  if (!preparation.results) drafts = resultsAsUser(drafts, () => true)
  else if (!preparation.orphans) {
    const orphans = orphansOf(drafts)
    if (orphans.size > 0) drafts = resultsAsUser(drafts, (result) => orphans.has(result))
  }
  drafts = placeInstructions(drafts, preparation)
  if (!preparation.emptyAnswers) drafts = drafts.filter((message) => !isEmptyAnswer(message))
  drafts = oneMessageEach(drafts, preparation)
  if (!preparation.calls.parallel) drafts = oneCallEach(drafts)
  if (preparation.calls.apartFromText) drafts = drafts.flatMap(textApartFromCalls)
  return drafts
}
