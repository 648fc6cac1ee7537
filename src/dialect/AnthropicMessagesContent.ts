import { Result } from "effect"
import type { NestedBlock, RequestBlock, RequestMessage } from "../../schema/anthropic/MessagesRequest.ts"
import type { Message } from "../domain/Conversation.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { ToolCall } from "../domain/Output.ts"
import type { Tool } from "../domain/Tool.ts"
import * as ReasoningCarrier from "./ReasoningCarrier.ts"
import { isRecord } from "./WireRequest.ts"

type Failure = InvalidRequest | UnsupportedFeature

interface Context {
  /** Every tool of the request, deferred ones too. */
  readonly tools: ReadonlyMap<string, Tool>
  /** Paths of blocks that are left out of the prompt. */
  readonly ignored: Array<string>
}

/** Whether a block that the model cannot read is an error or leaves a placeholder. */
type Unreadable = "refuse" | "replace"

/** Claude Code's first system text; it differs from session to session and would keep their prompts from sharing a cached start. */
const billingHeader = "x-anthropic-billing-header:"

const withoutBillingHeader = (text: string): string => {
  if (!text.startsWith(billingHeader)) return text
  const end = text.indexOf("\n")
  return end < 0 ? "" : text.slice(end + 1).trimStart()
}

const missing = (path: string) => Result.fail(new InvalidRequest({ message: `${path}: Missing key`, field: path }))

const unreadable = (type: string, path: string, mode: Unreadable): Result.Result<string, UnsupportedFeature> => {
  // Only what can be the name of a type is repeated, never a text.
  const kind = /^[a-z_]{1,32}$/.test(type) ? type : "unknown"
  return mode === "refuse"
    ? Result.fail(
      new UnsupportedFeature({ message: `${path}: the model reads only text, not a block of type ${kind}`, field: path })
    )
    : Result.succeed(`[${kind} left out: this model reads only text]`)
}

/** A definition where a reference to it stands, in the words that most chat templates have for their list of tools. */
const toolDefinition = (name: string, { tools }: Context): string => {
  const tool = tools.get(name)
  return tool === undefined
    ? `[the tool ${name} is not available]`
    : `<tools>\n${JSON.stringify({ type: "function", function: tool })}\n</tools>`
}

const lines = (...texts: ReadonlyArray<string | null | undefined>) => texts.filter((text) => typeof text === "string").join("\n")

const documentText = (
  block: RequestBlock | NestedBlock,
  path: string,
  mode: Unreadable
): Result.Result<string, Failure> => {
  const { source } = block
  if (!isRecord(source)) return missing(`${path}.source`)
  if (source["type"] === "text" && typeof source["data"] === "string") {
    return Result.succeed(lines(block.title, block.context, source["data"]))
  }
  if (source["type"] === "content") {
    const text = typeof source["content"] === "string"
      ? Result.succeed(source["content"])
      : nestedText(source["content"], `${path}.source.content`, mode)
    return Result.map(text, (own) => lines(block.title, block.context, own))
  }
  return unreadable("document", path, mode)
}

/** Content blocks that no schema described. */
const nestedText = (blocks: unknown, path: string, mode: Unreadable): Result.Result<string, Failure> => {
  const texts: Array<string> = []
  for (const [index, block] of (Array.isArray(blocks) ? blocks : []).entries()) {
    const own = `${path}.${index}`
    if (!isRecord(block) || typeof block["type"] !== "string") return missing(`${own}.type`)
    if (block["type"] === "text" && typeof block["text"] === "string") texts.push(block["text"])
    else {
      const text = unreadable(block["type"], own, mode)
      if (Result.isFailure(text)) return text
      texts.push(text.success)
    }
  }
  return Result.succeed(texts.join("\n"))
}

/** A block of a message that is not the model's own, as text. */
const blockText = (
  block: RequestBlock | NestedBlock,
  path: string,
  mode: Unreadable,
  context: Context
): Result.Result<string, Failure> => {
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? Result.succeed(block.text) : missing(`${path}.text`)
    case "document":
      return documentText(block, path, mode)
    case "search_result": {
      const source = typeof block.source === "string" ? block.source : undefined
      return Result.map(nestedText(block.content, `${path}.content`, mode), (text) => lines(block.title, source, text))
    }
    case "tool_reference":
    case "tool_addition":
      return typeof block.tool_name === "string"
        ? Result.succeed(toolDefinition(block.tool_name, context))
        : missing(`${path}.tool_name`)
    case "tool_removal":
      return typeof block.tool_name === "string"
        ? Result.succeed(`[the tool ${block.tool_name} is no longer available]`)
        : missing(`${path}.tool_name`)
    case "thinking":
    case "redacted_thinking":
      context.ignored.push(path)
      return Result.succeed("")
    default:
      return unreadable(block.type, path, mode)
  }
}

const join = (texts: ReadonlyArray<string>, separator: string) => texts.filter((text) => text !== "").join(separator).toWellFormed()

const blocksText = (
  blocks: ReadonlyArray<RequestBlock | NestedBlock>,
  path: string,
  separator: string,
  mode: Unreadable,
  context: Context
): Result.Result<string, Failure> => {
  const texts: Array<string> = []
  for (const [index, block] of blocks.entries()) {
    const text = blockText(block, `${path}.${index}`, mode, context)
    if (Result.isFailure(text)) return text
    texts.push(text.success)
  }
  return Result.succeed(join(texts, separator))
}

const toolResult = (block: RequestBlock, path: string, context: Context): Result.Result<Message, Failure> => {
  const { content } = block
  if (typeof block.tool_use_id !== "string") return missing(`${path}.tool_use_id`)
  if (content !== null && content !== undefined && typeof content !== "string" && !Array.isArray(content)) {
    const field = `${path}.content`
    return Result.fail(new InvalidRequest({ message: `${field}: Expected a string or a list of content blocks`, field }))
  }
  const toolCallId = block.tool_use_id
  const text = typeof content === "string"
    ? Result.succeed(content.toWellFormed())
    : blocksText(content ?? [], `${path}.content`, "\n", "replace", context)
  return Result.map(text, (own) => ({
    role: "tool",
    toolCallId,
    content: block.is_error === true && !/^\W*(tool_use_)?error/i.test(own) ? `Error: ${own}` : own
  }))
}

/** Tool results become messages of their own; the texts around them stay where they are. */
const userMessages = (
  blocks: ReadonlyArray<RequestBlock>,
  path: string,
  mode: Unreadable,
  context: Context
): Result.Result<ReadonlyArray<Message>, Failure> =>
  Result.gen(function*() {
    const messages: Array<Message> = []
    let texts: Array<string> = []
    const flush = () => {
      const content = join(texts, "\n")
      if (content !== "") messages.push({ role: "user", content })
      texts = []
    }
    for (const [index, block] of blocks.entries()) {
      const own = `${path}.${index}`
      if (block.type === "tool_result") {
        flush()
        messages.push(yield* toolResult(block, own, context))
      } else texts.push(yield* blockText(block, own, mode, context))
    }
    flush()
    if (messages.length === 0) messages.push({ role: "user", content: "" })
    return messages
  })

const toolCall = (block: RequestBlock, path: string): Result.Result<ToolCall, Failure> => {
  if (typeof block.id !== "string") return missing(`${path}.id`)
  if (typeof block.name !== "string") return missing(`${path}.name`)
  if (block.input !== undefined && block.input !== null && !isRecord(block.input)) {
    return Result.fail(new InvalidRequest({ message: `${path}.input: Expected an object`, field: `${path}.input` }))
  }
  return Result.succeed({
    id: block.id,
    name: block.name.toWellFormed(),
    arguments: JSON.stringify(block.input ?? {}).toWellFormed()
  })
}

const assistantMessage = (
  blocks: ReadonlyArray<RequestBlock>,
  path: string,
  context: Context
): Result.Result<Message, Failure> =>
  Result.gen(function*() {
    let text = ""
    const reasoning: Array<string> = []
    const toolCalls: Array<ToolCall> = []
    for (const [index, block] of blocks.entries()) {
      const own = `${path}.${index}`
      switch (block.type) {
        case "text":
          if (typeof block.text !== "string") return yield* missing(`${own}.text`)
          text += block.text
          break
        case "thinking":
          reasoning.push(ReasoningCarrier.open(block.signature ?? "") ?? block.thinking ?? "")
          break
        case "tool_use":
          toolCalls.push(yield* toolCall(block, own))
          break
        default:
          context.ignored.push(own)
      }
    }
    const thought = join(reasoning, "\n")
    return {
      role: "assistant",
      content: text === "" && toolCalls.length > 0 ? null : text.toWellFormed(),
      ...(thought === "" ? {} : { reasoning: thought }),
      ...(toolCalls.length === 0 ? {} : { toolCalls })
    }
  })

/** The `system` field as a message; none where it is empty. */
export const systemMessages = (
  system: string | ReadonlyArray<RequestBlock> | undefined,
  context: Context
): Result.Result<ReadonlyArray<Message>, Failure> => {
  const [first, ...rest] = typeof system === "string" ? [{ type: "text", text: system }] : system ?? []
  if (first === undefined) return Result.succeed([])
  const own = first.type === "text" && typeof first.text === "string" ? { ...first, text: withoutBillingHeader(first.text) } : first
  return Result.map(
    blocksText([own, ...rest], "system", "\n\n", "refuse", context),
    (content) => content === "" ? [] : [{ role: "system", content }]
  )
}

/** Messages in the order of the request. The newest turn is what stands after the model's last answer. */
export const conversationMessages = (
  wire: ReadonlyArray<RequestMessage>,
  context: Context
): Result.Result<ReadonlyArray<Message>, Failure> =>
  Result.gen(function*() {
    const messages: Array<Message> = []
    const lastAnswer = wire.findLastIndex(({ role }) => role === "assistant")
    for (const [index, { content, role }] of wire.entries()) {
      const path = `messages.${index}.content`
      const mode = index > lastAnswer ? "refuse" : "replace"
      if (typeof content === "string") messages.push({ role, content: content.toWellFormed() })
      else if (role === "assistant") messages.push(yield* assistantMessage(content, path, context))
      else if (role === "user") messages.push(...yield* userMessages(content, path, mode, context))
      else messages.push({ role, content: yield* blocksText(content, path, "\n\n", mode, context) })
    }
    return messages
  })
