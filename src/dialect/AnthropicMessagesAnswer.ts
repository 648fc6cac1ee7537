import type { ContentBlock, Message, MessageUsage } from "../../schema/anthropic/Message.ts"
import type { Output } from "../domain/Output.ts"
import type { Finish, OutputEvent } from "../domain/OutputEvent.ts"
import type { Usage } from "../domain/Usage.ts"
import { frame as errorFrame } from "./AnthropicError.ts"
import { cacheTimings } from "./OpenAiUsage.ts"
import * as ReasoningCarrier from "./ReasoningCarrier.ts"
import type { StreamEncoder } from "./StreamEncoder.ts"
import { wireTimings } from "./Timings.ts"
import { isRecord } from "./WireRequest.ts"

/** What an answer repeats of its request. */
export interface AnswerHead {
  /** "msg_…" */
  readonly id: string
  readonly model: string
  /** Thinking goes out without its text. */
  readonly omitThinking: boolean
  /** The stream tells how far the prompt is prefilled. */
  readonly returnProgress: boolean
}

const wireUsage = (usage: Usage): MessageUsage => ({
  input_tokens: usage.promptTokens - usage.cachedTokens,
  cache_read_input_tokens: usage.cachedTokens,
  cache_creation_input_tokens: 0,
  output_tokens: usage.completionTokens,
  ...(usage.reasoningTokens === undefined ? {} : { output_tokens_details: { thinking_tokens: usage.reasoningTokens } }),
  timings: { ...wireTimings(usage), ...cacheTimings(usage) }
})

const stopReason = (finish: Finish) => {
  if (finish.stopString !== undefined) return "stop_sequence"
  switch (finish.reason) {
    case "length":
      return "max_tokens"
    case "tool_calls":
      return "tool_use"
    case "stop":
      return "end_turn"
  }
}

const stop = (finish: Finish) => ({ stop_reason: stopReason(finish), stop_sequence: finish.stopString ?? null } as const)

/** Ids of this server's own making get Anthropic's prefix; those that a model wrote stay, so that history renders as it was. */
const toolUseId = (id: string) => id.startsWith("call_") ? `toolu_${id.slice("call_".length)}` : id

/** Anthropic's advice for arguments that are no JSON object: hand them to the tool under a key that no schema has. */
const toolInput = (text: string): Readonly<Record<string, unknown>> => {
  if (text.trim() === "") return {}
  try {
    const input: unknown = JSON.parse(text)
    if (isRecord(input)) return input
  } catch {
    // Falls through to the marker.
  }
  return { INVALID_JSON: text }
}

const content = ({ omitThinking }: AnswerHead, output: Output): ReadonlyArray<ContentBlock> => {
  const blocks: Array<ContentBlock> = []
  if (output.reasoning !== "") {
    blocks.push(
      omitThinking
        ? { type: "thinking", thinking: "", signature: ReasoningCarrier.seal(output.reasoning) }
        : { type: "thinking", thinking: output.reasoning, signature: ReasoningCarrier.plain }
    )
  }
  if (output.text !== "" || (blocks.length === 0 && output.toolCalls.length === 0)) blocks.push({ type: "text", text: output.text })
  for (const call of output.toolCalls) {
    blocks.push({ type: "tool_use", id: toolUseId(call.id), name: call.name, input: toolInput(call.arguments) })
  }
  return blocks
}

/** The whole answer as one JSON text. */
export const message = (head: AnswerHead, output: Output, finish: Finish): string => {
  const body: Message = {
    id: head.id,
    type: "message",
    role: "assistant",
    model: head.model,
    content: content(head, output),
    ...stop(finish),
    usage: wireUsage(finish.usage)
  }
  return JSON.stringify(body)
}

type Kind = ContentBlock["type"]

const frame = (type: string, fields: string) => `event: ${type}\ndata: {"type":"${type}"${fields}}\n\n`

const ping = frame("ping", "")

const deltaEnd = "}}\n\n"

/** Events of one streamed answer. `promptTokens` is what message_start tells; how many were cached is known at the end. */
export class MessageStream implements StreamEncoder {
  readonly progress?: NonNullable<StreamEncoder["progress"]>
  readonly #head: AnswerHead
  readonly #promptTokens: number
  /** The kind of the block that is open. */
  #open: Kind | undefined
  #blocks = 0
  /** Thinking that was not shown, for its signature. */
  #omitted = ""
  /** What stands before a delta of the open block. */
  #prefix = ""

  constructor(head: AnswerHead, promptTokens: number) {
    this.#head = head
    this.#promptTokens = promptTokens
    if (head.returnProgress) {
      this.progress = ({ elapsedMs, processed, total }) =>
        frame("ping", `,"prompt_progress":${JSON.stringify({ total, processed, time_ms: Math.round(elapsedMs) })}`)
    }
  }

  start(): string {
    const { id, model } = this.#head
    const usage: MessageUsage = {
      input_tokens: this.#promptTokens,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      output_tokens: 0
    }
    const message: Message = { id, type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null, usage }
    return frame("message_start", `,"message":${JSON.stringify(message)}`) + ping
  }

  event(event: OutputEvent): string {
    switch (event._tag) {
      case "Text":
        return (this.#open === "text" ? "" : this.#begin("text", { type: "text", text: "" }, "text_delta", "text")) +
          this.#delta(event.text)
      case "Reasoning":
        return this.#thinking(event.text)
      case "ToolCall":
        return this.#toolUse(event.id, event.name)
      case "ToolArguments":
        return this.#delta(event.text)
      case "Finish":
        return this.#finish(event)
    }
  }

  reset(): void {
    this.#open = undefined
    this.#blocks = 0
    this.#omitted = ""
  }

  error(error: Parameters<StreamEncoder["error"]>[0]): string {
    return errorFrame(error, this.#head.id)
  }

  keepAlive(): string {
    return ping
  }

  #thinking(text: string): string {
    const opening = this.#open === "thinking"
      ? ""
      : this.#begin("thinking", { type: "thinking", thinking: "", signature: "" }, "thinking_delta", "thinking")
    if (!this.#head.omitThinking) return opening + this.#delta(text)
    this.#omitted += text
    return opening
  }

  #toolUse(id: string, name: string): string {
    const block: ContentBlock = { type: "tool_use", id: toolUseId(id), name, input: {} }
    return this.#begin("tool_use", block, "input_json_delta", "partial_json") + this.#delta("")
  }

  #finish(finish: Finish): string {
    const empty = this.#blocks === 0 ? this.#begin("text", { type: "text", text: "" }, "text_delta", "text") : ""
    return empty + this.#close() +
      frame("message_delta", `,"delta":${JSON.stringify(stop(finish))},"usage":${JSON.stringify(wireUsage(finish.usage))}`) +
      frame("message_stop", "")
  }

  #begin(kind: Kind, block: ContentBlock, delta: string, field: string): string {
    const closing = this.#close()
    const index = this.#blocks++
    this.#open = kind
    this.#prefix = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${delta}","${field}":`
    return closing + frame("content_block_start", `,"index":${index},"content_block":${JSON.stringify(block)}`)
  }

  #close(): string {
    const kind = this.#open
    this.#open = undefined
    if (kind === undefined) return ""
    const index = this.#blocks - 1
    return (kind === "thinking" ? this.#signature(index) : "") + frame("content_block_stop", `,"index":${index}`)
  }

  #signature(index: number): string {
    const signature = this.#head.omitThinking ? ReasoningCarrier.seal(this.#omitted) : ReasoningCarrier.plain
    this.#omitted = ""
    return frame("content_block_delta", `,"index":${index},"delta":{"type":"signature_delta","signature":"${signature}"}`)
  }

  #delta(text: string): string {
    return this.#prefix + JSON.stringify(text) + deltaEnd
  }
}
