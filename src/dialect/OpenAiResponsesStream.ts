import type { OutputItem, ResponseObject } from "../../schema/openai/Responses.ts"
import type { GenerationError, RequestRefused } from "../domain/Errors.ts"
import type { TokenLogprobs } from "../domain/Logprobs.ts"
import type { Finish, OutputEvent } from "../domain/OutputEvent.ts"
import type { Usage } from "../domain/Usage.ts"
import { CustomToolInput } from "./CustomToolInput.ts"
import type { EventFraming } from "./EventFraming.ts"
import { errorMessage } from "./OpenAiError.ts"
import { itemId, type ResponseHead, responseObject, type ResponseState, wireUsage } from "./OpenAiResponsesOutput.ts"
import type { ToolSet, ToolTarget } from "./OpenAiResponsesTools.ts"
import { wireLogprobs } from "./OpenAiTokens.ts"
import * as ReasoningCarrier from "./ReasoningCarrier.ts"
import type { StreamEncoder } from "./StreamEncoder.ts"

export interface ResponseStreamOptions {
  readonly framing: EventFraming
  readonly head: ResponseHead
  readonly tools: ToolSet
  readonly reasoning: { readonly summary: boolean; readonly sealed: boolean }
  /** Takes the response that ended by itself, before its event is sent. */
  readonly onEnd: (response: ResponseObject) => void
}

type ItemStatus = "completed" | "incomplete"

/** The item that deltas go into. */
interface OpenItem {
  readonly kind: "reasoning" | "message" | "function" | "custom"
  readonly id: string
  readonly index: number
  /** The delta event up to its sequence number, and from there to the delta itself. */
  readonly deltaHead: string
  readonly deltaMiddle: string
  readonly deltaTail: string
  text: string
  readonly logprobs: Array<ReturnType<typeof wireLogprobs>[number]>
  readonly callId: string
  readonly target: ToolTarget
  readonly input: CustomToolInput
}

const deltaTypes = {
  reasoning: "response.reasoning_text.delta",
  message: "response.output_text.delta",
  function: "response.function_call_arguments.delta",
  custom: "response.custom_tool_call_input.delta"
} as const

const idPrefixes = { reasoning: "rs", message: "msg", function: "fc", custom: "ctc" } as const

const noTarget: ToolTarget = { kind: "function", name: "", namespace: undefined }

/** The events of one response, `response.created` to `response.completed`, and the response that they add up to. */
export class ResponseStream implements StreamEncoder {
  private readonly options: ResponseStreamOptions
  /** Of the next event; `start` has the first two. */
  private sequence = 2
  /** `sequence` when the generation began. */
  private firstSequence = 2
  private output: Array<OutputItem> = []
  private opened: OpenItem | undefined
  private items = 0
  private answered = false
  private eventSeen = false

  constructor(options: ResponseStreamOptions) {
    this.options = options
  }

  start(): string {
    const response = this.inProgress()
    return this.lifecycle("response.created", 0, response) + this.lifecycle("response.in_progress", 1, response)
  }

  keepAlive(): string {
    const frame = this.lifecycle("response.in_progress", this.sequence++, this.inProgress())
    if (!this.eventSeen) this.firstSequence = this.sequence
    return frame
  }

  reset(): void {
    this.sequence = this.firstSequence
    this.output = []
    this.opened = undefined
    this.items = 0
    this.answered = false
    this.eventSeen = false
  }

  event(event: OutputEvent): string {
    this.eventSeen = true
    switch (event._tag) {
      case "Text":
        return event.logprobs === undefined ? this.delta("message", event.text) : this.textWithLogprobs(event.text, event.logprobs)
      case "Reasoning":
        return this.delta("reasoning", event.text)
      case "ToolCall":
        return this.beginCall(event.id, event.name)
      case "ToolArguments":
        return this.callArguments(event.text)
      case "Finish":
        return this.finish(event)
    }
  }

  /** Ends a response that was only to be prepared. */
  prepared(usage: Usage): string {
    const state: ResponseState = { status: "completed", output: [], usage: wireUsage(usage) }
    this.options.onEnd(responseObject(this.options.head, state))
    return this.terminal("response.completed", state)
  }

  error(error: GenerationError | RequestRefused): string {
    const open = this.opened === undefined ? [] : [this.finished(this.opened, "incomplete")]
    return this.terminal("response.failed", {
      status: "failed",
      output: [...this.output, ...open],
      error: { code: "server_error", message: errorMessage(error) }
    })
  }

  private finish(finish: Finish): string {
    const cut = finish.reason === "length"
    const closed = this.close(cut ? "incomplete" : "completed")
    const empty = !this.answered && (!cut || this.items === 0)
      ? this.open("message") + this.close(cut ? "incomplete" : "completed")
      : ""
    const state: ResponseState = {
      status: cut ? "incomplete" : "completed",
      output: this.output,
      usage: wireUsage(finish.usage),
      ...(cut ? { incomplete: finish.repeated === true ? "repetition" : "max_output_tokens" } : {})
    }
    this.options.onEnd(responseObject(this.options.head, state))
    return closed + empty + this.terminal(cut ? "response.incomplete" : "response.completed", state)
  }

  private delta(kind: "message" | "reasoning", text: string): string {
    const opening = this.opened?.kind === kind ? "" : this.close("completed") + this.open(kind)
    return opening + this.append(text)
  }

  private textWithLogprobs(text: string, logprobs: ReadonlyArray<TokenLogprobs>): string {
    const opening = this.opened?.kind === "message" ? "" : this.close("completed") + this.open("message")
    const item = this.opened
    if (item === undefined) return opening
    const wire = wireLogprobs(logprobs)
    item.text += text
    item.logprobs.push(...wire)
    return `${opening}${item.deltaHead}${this.sequence++}${item.deltaMiddle}${JSON.stringify(text)},"logprobs":${
      JSON.stringify(wire)
    }}${this.options.framing.close}`
  }

  private append(text: string): string {
    const item = this.opened
    if (item === undefined || text === "") return ""
    item.text += text
    return item.deltaHead + this.sequence++ + item.deltaMiddle + JSON.stringify(text) + item.deltaTail
  }

  /** A call comes after the turn's message, which is empty where the model wrote none. */
  private beginCall(callId: string, name: string): string {
    const target = this.options.tools.target(name)
    const closed = this.close("completed")
    const message = this.answered ? "" : this.open("message") + this.close("completed")
    return closed + message + this.open(target.kind, callId, target)
  }

  private callArguments(text: string): string {
    return this.append(this.opened?.kind === "custom" ? this.opened.input.push(text) : text)
  }

  private open(kind: OpenItem["kind"], callId = "", target: ToolTarget = noTarget): string {
    const { framing } = this.options
    const index = this.items++
    const id = itemId(this.options.head.id, idPrefixes[kind], index)
    const summary = kind === "reasoning" && this.options.reasoning.summary
    const type = summary ? "response.reasoning_summary_text.delta" : deltaTypes[kind]
    const place = summary ? ",\"summary_index\":0" : kind === "message" || kind === "reasoning" ? ",\"content_index\":0" : ""
    const item: OpenItem = {
      kind,
      id,
      index,
      deltaHead: `${framing.open(type)},"sequence_number":`,
      deltaMiddle: `,"item_id":"${id}","output_index":${index}${place},"delta":`,
      deltaTail: `${kind === "message" ? ",\"logprobs\":[]" : ""}}${framing.close}`,
      text: "",
      logprobs: [],
      callId,
      target,
      input: new CustomToolInput()
    }
    this.opened = item
    if (kind !== "reasoning") this.answered = true
    const added = this.frame("response.output_item.added", { output_index: index, item: this.empty(item) })
    if (summary) {
      return added + this.frame("response.reasoning_summary_part.added", {
        item_id: id,
        output_index: index,
        summary_index: 0,
        part: { type: "summary_text", text: "" }
      })
    }
    if (kind === "function" || kind === "custom") return added
    return added + this.frame("response.content_part.added", { item_id: id, output_index: index, content_index: 0, part: part(item) })
  }

  private close(status: ItemStatus): string {
    const item = this.opened
    if (item === undefined) return ""
    const rest = item.kind === "custom" ? this.append(item.input.end()) : ""
    this.opened = undefined
    const finished = this.finished(item, status)
    this.output.push(finished)
    return rest + this.done(item) + this.frame("response.output_item.done", { output_index: item.index, item: finished })
  }

  /** The events that end an item's content. */
  private done(item: OpenItem): string {
    const place = { item_id: item.id, output_index: item.index }
    switch (item.kind) {
      case "message":
        return this.frame("response.output_text.done", { ...place, content_index: 0, text: item.text, logprobs: item.logprobs }) +
          this.frame("response.content_part.done", { ...place, content_index: 0, part: part(item) })
      case "reasoning":
        return this.options.reasoning.summary
          ? this.frame("response.reasoning_summary_text.done", { ...place, summary_index: 0, text: item.text }) +
            this.frame("response.reasoning_summary_part.done", {
              ...place,
              summary_index: 0,
              part: { type: "summary_text", text: item.text }
            })
          : this.frame("response.reasoning_text.done", { ...place, content_index: 0, text: item.text }) +
            this.frame("response.content_part.done", { ...place, content_index: 0, part: part(item) })
      case "function":
        return this.frame("response.function_call_arguments.done", { ...place, name: item.target.name, arguments: item.text })
      case "custom":
        return this.frame("response.custom_tool_call_input.done", { ...place, input: item.text })
    }
  }

  /** An item as it is announced. */
  private empty(item: OpenItem): OutputItem {
    switch (item.kind) {
      case "message":
        return { id: item.id, type: "message", status: "in_progress", role: "assistant", content: [] }
      case "reasoning":
        return { id: item.id, type: "reasoning", status: "in_progress", summary: [] }
      default:
        return callItem(item, "in_progress")
    }
  }

  private finished(item: OpenItem, status: ItemStatus): OutputItem {
    const { sealed, summary } = this.options.reasoning
    switch (item.kind) {
      case "message":
        return { id: item.id, type: "message", status, role: "assistant", content: [outputText(item)] }
      case "reasoning":
        return {
          id: item.id,
          type: "reasoning",
          status,
          summary: summary ? [{ type: "summary_text", text: item.text }] : [],
          ...(summary ? {} : { content: [{ type: "reasoning_text", text: item.text }] }),
          ...(sealed ? { encrypted_content: ReasoningCarrier.seal(item.text) } : {})
        }
      default:
        return callItem(item, status)
    }
  }

  private inProgress(): string {
    return JSON.stringify(responseObject(this.options.head, { status: "in_progress", output: [] }))
  }

  private terminal(type: string, state: ResponseState): string {
    return this.lifecycle(type, this.sequence++, JSON.stringify(responseObject(this.options.head, state)))
  }

  private lifecycle(type: string, sequence: number, response: string): string {
    const { framing } = this.options
    return `${framing.open(type)},"sequence_number":${sequence},"response":${response}}${framing.close}`
  }

  private frame(type: string, fields: Readonly<Record<string, unknown>>): string {
    const { framing } = this.options
    return `${framing.open(type)},"sequence_number":${this.sequence++},${JSON.stringify(fields).slice(1)}${framing.close}`
  }
}

const outputText = (item: OpenItem) => ({ type: "output_text", text: item.text, annotations: [], logprobs: item.logprobs }) as const

const part = (item: OpenItem) => item.kind === "message" ? outputText(item) : { type: "reasoning_text", text: item.text }

const callItem = ({ callId, id, kind, target, text }: OpenItem, status: ItemStatus | "in_progress"): OutputItem => {
  const call = {
    id,
    call_id: callId,
    name: target.name,
    ...(target.namespace === undefined ? {} : { namespace: target.namespace }),
    status
  }
  return kind === "custom" ? { ...call, type: "custom_tool_call", input: text } : { ...call, type: "function_call", arguments: text }
}
