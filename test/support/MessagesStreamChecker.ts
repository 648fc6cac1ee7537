import { Schema } from "effect"
import { type ContentBlock, type MessageStreamEvent, MessageStreamEvent as EventSchema } from "../../schema/anthropic/Message.ts"

/** A stream that was checked from its first event to its last. */
export interface CheckedMessage {
  readonly events: ReadonlyArray<MessageStreamEvent>
  /** Event names in order, repeated deltas and pings once: what two streams of the same kind have in common. */
  readonly grammar: ReadonlyArray<string>
  /** The blocks as a client puts them together; the input of a tool_use is its JSON text, parsed. */
  readonly content: ReadonlyArray<ContentBlock>
  readonly stopReason: string | null
  readonly inputTokens: number
  readonly outputTokens: number
  /** The error that ended the stream. */
  readonly error: string | undefined
}

const readEvent = Schema.decodeUnknownSync(EventSchema)

interface OpenBlock {
  readonly index: number
  readonly block: ContentBlock
  json: string
  signed: boolean
}

const fail = (message: string): never => {
  throw new Error(`Messages stream: ${message}`)
}

/** Frames of exactly one `event:` and one `data:` line, the name repeated as the type. */
export const readFrames = (body: string): ReadonlyArray<unknown> => {
  if (!body.endsWith("\n\n")) fail("the last frame is not complete")
  return body.slice(0, -2).split("\n\n").map((frame) => {
    const match = /^event: (\w+)\ndata: (\{.*\})$/.exec(frame) ?? fail(`not an event and its data: ${frame}`)
    const data: { readonly type?: unknown } = JSON.parse(match[2] ?? "")
    if (data.type !== match[1]) fail(`event ${match[1]} has the type ${String(data.type)}`)
    return data
  })
}

/** The state machine of a Messages stream: throws where a body leaves it, also at an end that is none. */
export const checkMessagesStream = (body: string): CheckedMessage => {
  const events = readFrames(body).map((data) => readEvent(data))
  const content: Array<ContentBlock> = []
  const grammar: Array<string> = []
  let state: "before" | "between" | "block" | "delta" | "over" = "before"
  let open: OpenBlock | undefined
  let stopReason: string | null = null
  let inputTokens = 0
  let outputTokens = 0
  let error: string | undefined

  const append = (index: number, delta: Extract<MessageStreamEvent, { type: "content_block_delta" }>["delta"]) => {
    const current = open !== undefined && open.index === index ? open : fail(`a delta for block ${index}, which is not open`)
    const { block } = current
    if (current.signed) fail("a delta after the signature")
    if (delta.type === "text_delta" && block.type === "text") content[index] = { ...block, text: block.text + delta.text }
    else if (delta.type === "thinking_delta" && block.type === "thinking") {
      content[index] = { ...block, thinking: block.thinking + delta.thinking }
    } else if (delta.type === "signature_delta" && block.type === "thinking") {
      content[index] = { ...block, signature: delta.signature }
      current.signed = true
    } else if (delta.type === "input_json_delta" && block.type === "tool_use") current.json += delta.partial_json
    else fail(`a ${delta.type} in a block of type ${block.type}`)
    open = { ...current, block: content[index] ?? block }
  }

  const close = (index: number) => {
    if (open === undefined || open.index !== index) return fail(`the end of block ${index}, which is not open`)
    const { block, json, signed } = open
    if (block.type === "thinking" && !signed) fail("thinking without a signature")
    if (block.type === "tool_use" && json !== "") content[index] = { ...block, input: JSON.parse(json) }
    open = undefined
  }

  for (const event of events) {
    if (state === "over") fail(`${event.type} after the end`)
    const name = event.type === "content_block_start"
      ? `start ${event.content_block.type}`
      : event.type === "content_block_delta"
      ? event.delta.type
      : event.type
    if (event.type !== "ping" && grammar.at(-1) !== name) grammar.push(name)
    if (event.type === "ping") continue
    if (event.type === "error") {
      error = event.error.message
      state = "over"
      continue
    }
    if (state === "before" && event.type !== "message_start") fail(`${event.type} before message_start`)
    switch (event.type) {
      case "message_start": {
        if (state !== "before") fail("a second message_start")
        const { message } = event
        if (message.content.length > 0 || message.stop_reason !== null) fail("a message that starts with content or an end")
        inputTokens = message.usage.input_tokens
        state = "between"
        break
      }
      case "content_block_start":
        if (state !== "between" || event.index !== content.length) fail(`block ${event.index} begins out of turn`)
        if (event.content_block.type === "tool_use" && Object.keys(event.content_block.input).length > 0) fail("input outside of deltas")
        content.push(event.content_block)
        open = { index: event.index, block: event.content_block, json: "", signed: false }
        state = "block"
        break
      case "content_block_delta":
        append(event.index, event.delta)
        break
      case "content_block_stop":
        close(event.index)
        state = "between"
        break
      case "message_delta": {
        if (state !== "between") fail("message_delta with an open block")
        if (event.delta.stop_reason === null) fail("no stop_reason")
        if ((event.delta.stop_reason === "stop_sequence") !== (event.delta.stop_sequence !== null)) fail("stop_sequence without its reason")
        stopReason = event.delta.stop_reason
        inputTokens = event.usage.input_tokens + event.usage.cache_read_input_tokens + event.usage.cache_creation_input_tokens
        outputTokens = event.usage.output_tokens
        state = "delta"
        break
      }
      case "message_stop":
        if (state !== "delta") fail("message_stop before message_delta")
        state = "over"
    }
  }
  if (state !== "over") fail(`it ends in the state ${state}`)
  return { events, grammar, content, stopReason, inputTokens, outputTokens, error }
}
