import { Result } from "effect"
import type { ChatContentPart, ChatMessage } from "../../schema/openai/Chat.ts"
import type { Message } from "../domain/Conversation.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"

type Refusal = InvalidRequest | UnsupportedFeature

const textTypes: ReadonlySet<string> = new Set(["text", "input_text", "output_text", "refusal"])

const mediaNames: Readonly<Record<string, string>> = {
  image_url: "image",
  input_image: "image",
  image: "image",
  input_audio: "audio",
  audio: "audio",
  audio_url: "audio",
  video_url: "video",
  video: "video",
  file: "file",
  input_file: "file"
}

const placeholder = (type: string): string => `[${mediaNames[type] ?? "part"} omitted: this model reads only text]`

const missing = (field: string) => new InvalidRequest({ message: `${field}: Missing key`, field })

const partsText = (parts: ReadonlyArray<ChatContentPart>, field: string, refuseMedia: boolean): Result.Result<string, Refusal> => {
  let text = ""
  for (const [index, part] of parts.entries()) {
    const path = `${field}.${index}`
    if (!textTypes.has(part.type)) {
      if (refuseMedia) {
        return Result.fail(
          new UnsupportedFeature({ message: `${path}: only text parts are supported, because the model reads only text`, field: path })
        )
      }
      text += placeholder(part.type)
      continue
    }
    const name = part.type === "refusal" ? "refusal" : "text"
    const own = part[name]
    if (own === undefined) return Result.fail(missing(`${path}.${name}`))
    text += own
  }
  return Result.succeed(text)
}

const argumentsText = (value: unknown): string =>
  typeof value === "string" ? value.toWellFormed() : value === undefined || value === null ? "" : JSON.stringify(value)

const toolCalls = (wire: ChatMessage) => {
  const calls = (wire.tool_calls ?? []).map((call) => ({
    id: call.id ?? "",
    name: call.function.name.toWellFormed(),
    arguments: argumentsText(call.function.arguments)
  }))
  const legacy = wire.function_call
  return legacy === undefined || legacy === null
    ? calls
    : [...calls, { id: "", name: legacy.name.toWellFormed(), arguments: argumentsText(legacy.arguments) }]
}

const reasoning = (wire: ChatMessage): string | undefined => {
  const text = wire.reasoning_content ?? wire.reasoning
  return typeof text === "string" ? text.toWellFormed() : undefined
}

// Written without generators: a long session has thousands of messages, and decoding them keeps the event loop.
const message = (wire: ChatMessage, index: number, newest: boolean): Result.Result<Message, Refusal> => {
  const { content = null } = wire
  if (typeof content === "string" || content === null) return textMessage(wire, index, content?.toWellFormed() ?? null)
  const text = partsText(content, `messages.${index}.content`, newest && wire.role === "user")
  return Result.isFailure(text) ? Result.fail(text.failure) : textMessage(wire, index, text.success.toWellFormed())
}

const textMessage = (wire: ChatMessage, index: number, content: string | null): Result.Result<Message, Refusal> => {
  const name = wire.name === null || wire.name === undefined ? {} : { name: wire.name.toWellFormed() }
  if (wire.role === "assistant") {
    const calls = toolCalls(wire)
    const thought = reasoning(wire)
    return Result.succeed({
      role: "assistant",
      content,
      ...(thought === undefined ? {} : { reasoning: thought }),
      ...(calls.length === 0 ? {} : { toolCalls: calls })
    })
  }
  if (wire.role === "tool" || wire.role === "function") {
    return Result.succeed({ role: "tool", toolCallId: wire.tool_call_id ?? "", ...name, content: content ?? "" })
  }
  return content === null ? Result.fail(missing(`messages.${index}.content`)) : Result.succeed({ role: wire.role, content, ...name })
}

/**
 * The conversation. Content that is no text is refused in the newest turn of the user; before that, and in results of tools, a note stands in
 * its place, so that one image does not end a conversation for good.
 */
export const conversationMessages = (wire: ReadonlyArray<ChatMessage>): Result.Result<ReadonlyArray<Message>, Refusal> => {
  const lastAnswer = wire.findLastIndex(({ role }) => role === "assistant")
  const messages: Array<Message> = []
  for (const [index, item] of wire.entries()) {
    const decoded = message(item, index, index > lastAnswer)
    if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
    messages.push(decoded.success)
  }
  return Result.succeed(messages)
}
