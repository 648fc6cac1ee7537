import type { Conversation, Message } from "../domain/Conversation.ts"
import type { TextPrompt } from "../domain/GenerationRequest.ts"
import type { Tool } from "../domain/Tool.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { pack, type PackedVocabulary } from "../tokenizer/PackedVocabulary.ts"
import type { TemplateSource } from "./ChatRenderer.ts"
import { messageLength } from "./ConversationLength.ts"
import type { ReasoningState } from "./Reasoning.ts"

/** What the thread is started with. */
export interface ThreadData {
  readonly vocabulary: PackedVocabulary
  readonly template: TemplateSource
}

export const threadData = (vocabulary: Vocabulary, template: TemplateSource): ThreadData => ({ vocabulary: pack(vocabulary), template })

/** One prompt for the thread. */
export type LongPrompt =
  | { readonly _tag: "Chat"; readonly conversation: Conversation }
  | TextPrompt

export interface Work {
  readonly prompt: LongPrompt
  readonly tenant: string
  /** Milliseconds since the epoch, for the template. */
  readonly now: number
  readonly want: "tokens" | "text"
}

/** Where the rest of a long text belongs: in a text prompt, or in the last message. */
export type Place = "text" | "suffix" | "content" | "reasoning" | { readonly call: number }

/** A prompt as it is sent, piece by piece, so that no turn of the sender's event loop copies all of a long one. */
export type Parcel =
  | { readonly begin: Omit<Work, "prompt"> & { readonly prompt: LongPrompt } }
  | { readonly tools: ReadonlyArray<Tool> }
  | { readonly messages: ReadonlyArray<Message> }
  | { readonly more: string; readonly place: Place }
  | { readonly end: true }

export type ToThread = { readonly job: number } & (Parcel | { readonly cancel: true })

/** A text comes in several answers; `rest` tells whether there are more. */
export type FromThread =
  & { readonly job: number }
  & (
    | { readonly tokens: Int32Array; readonly reasoning: ReasoningState }
    | { readonly text: string; readonly rest: boolean }
    | { readonly refused: string }
  )

/** UTF-16 units of text in one message to or from the thread. */
export const unitsPerParcel = 64 * 1024

const itemsPerParcel = 256

const head = (text: string): string => text.length > unitsPerParcel ? text.slice(0, unitsPerParcel) : text

function* rest(text: string | null | undefined, place: Place): Generator<Parcel> {
  if (text === null || text === undefined) return
  for (let at = unitsPerParcel; at < text.length; at += unitsPerParcel) yield { more: text.slice(at, at + unitsPerParcel), place }
}

const headOf = (message: Message): Message => {
  if (message.role !== "assistant") return { ...message, content: head(message.content) }
  return {
    ...message,
    content: message.content === null ? null : head(message.content),
    ...(message.reasoning === undefined ? {} : { reasoning: head(message.reasoning) }),
    ...(message.toolCalls === undefined
      ? {}
      : { toolCalls: message.toolCalls.map((call) => ({ ...call, arguments: head(call.arguments) })) })
  }
}

function* restOf(message: Message): Generator<Parcel> {
  yield* rest(message.content, "content")
  if (message.role !== "assistant") return
  yield* rest(message.reasoning, "reasoning")
  for (const [call, { arguments: text }] of (message.toolCalls ?? []).entries()) yield* rest(text, { call })
}

function* parcelsOfMessages(messages: ReadonlyArray<Message>): Generator<Parcel> {
  let batch: Array<Message> = []
  let units = 0
  for (const message of messages) {
    const length = messageLength(message)
    if (batch.length > 0 && (units + length > unitsPerParcel || batch.length === itemsPerParcel)) {
      yield { messages: batch }
      batch = []
      units = 0
    }
    units += length
    if (length <= unitsPerParcel) batch.push(message)
    else {
      yield { messages: [headOf(message)] }
      yield* restOf(message)
      units = 0
    }
  }
  if (batch.length > 0) yield { messages: batch }
}

/** A prompt in pieces of about {@link unitsPerParcel}. */
export function* parcels({ prompt, ...work }: Work): Generator<Parcel> {
  if (prompt._tag === "Chat") {
    const { messages, tools, ...conversation } = prompt.conversation
    yield { begin: { ...work, prompt: { _tag: "Chat", conversation: { ...conversation, messages: [], tools: [] } } } }
    for (let at = 0; at < tools.length; at += 16) yield { tools: tools.slice(at, at + 16) }
    yield* parcelsOfMessages(messages)
  } else {
    const { suffix, text, ...options } = prompt
    yield { begin: { ...work, prompt: { ...options, text: head(text), ...(suffix === undefined ? {} : { suffix: head(suffix) }) } } }
    yield* rest(text, "text")
    yield* rest(suffix, "suffix")
  }
  yield { end: true }
}

/** Puts a prompt together again. */
export class Assembly {
  readonly work: Omit<Work, "prompt">
  readonly #options: LongPrompt
  readonly #tools: Array<Tool> = []
  readonly #messages: Array<Message> = []
  #text: string
  #suffix: string

  constructor({ prompt, ...work }: Work) {
    this.work = work
    this.#options = prompt
    this.#text = prompt._tag === "Text" ? prompt.text : ""
    this.#suffix = prompt._tag === "Text" ? prompt.suffix ?? "" : ""
  }

  add(parcel: Exclude<Parcel, { readonly begin: unknown } | { readonly end: true }>): void {
    if ("tools" in parcel) { for (const tool of parcel.tools) this.#tools.push(tool) }
    else if ("messages" in parcel) { for (const message of parcel.messages) this.#messages.push(message) }
    else if (parcel.place === "text") this.#text += parcel.more
    else if (parcel.place === "suffix") this.#suffix += parcel.more
    else this.#extend(parcel.more, parcel.place)
  }

  get prompt(): LongPrompt {
    const prompt = this.#options
    return prompt._tag === "Chat"
      ? { _tag: "Chat", conversation: { ...prompt.conversation, tools: this.#tools, messages: this.#messages } }
      : { ...prompt, text: this.#text, ...(prompt.suffix === undefined ? {} : { suffix: this.#suffix }) }
  }

  #extend(more: string, place: Exclude<Place, "text" | "suffix">): void {
    const last = this.#messages.pop()
    if (last === undefined) return
    const message: Message = last.role !== "assistant"
      ? { ...last, content: last.content + more }
      : place === "content"
      ? { ...last, content: (last.content ?? "") + more }
      : place === "reasoning"
      ? { ...last, reasoning: (last.reasoning ?? "") + more }
      : {
        ...last,
        toolCalls: (last.toolCalls ?? []).map((call, index) => index === place.call ? { ...call, arguments: call.arguments + more } : call)
      }
    this.#messages.push(message)
  }
}
