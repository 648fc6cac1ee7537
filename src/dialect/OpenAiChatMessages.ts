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

const message = (wire: ChatMessage, index: number, newest: boolean): Result.Result<Message, Refusal> =>
  Result.gen(function*() {
    const field = `messages.${index}.content`
    const wireContent = wire.content ?? null
    const content = typeof wireContent === "string" || wireContent === null
      ? wireContent?.toWellFormed() ?? null
      : (yield* partsText(wireContent, field, newest && wire.role === "user")).toWellFormed()
    const name = wire.name === null || wire.name === undefined ? {} : { name: wire.name.toWellFormed() }
    if (wire.role === "assistant") {
      const calls = toolCalls(wire)
      const thought = reasoning(wire)
      return {
        role: "assistant",
        content,
        ...(thought === undefined ? {} : { reasoning: thought }),
        ...(calls.length === 0 ? {} : { toolCalls: calls })
      }
    }
    if (wire.role === "tool" || wire.role === "function") {
      return { role: "tool", toolCallId: wire.tool_call_id ?? "", ...name, content: content ?? "" }
    }
    if (content === null) return yield* Result.fail(missing(field))
    return { role: wire.role, content, ...name }
  })

/**
 * The conversation. Content that is no text is refused in the newest turn of the user; before that, and in results of tools, a note stands in
 * its place, so that one image does not end a conversation for good.
 */
export const conversationMessages = (wire: ReadonlyArray<ChatMessage>): Result.Result<ReadonlyArray<Message>, Refusal> =>
  Result.gen(function*() {
    const lastAnswer = wire.findLastIndex(({ role }) => role === "assistant")
    const messages: Array<Message> = []
    for (const [index, item] of wire.entries()) messages.push(yield* message(item, index, index > lastAnswer))
    return messages
  })
