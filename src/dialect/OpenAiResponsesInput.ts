import { Result, Schema } from "effect"
import {
  AdditionalTools,
  CustomToolCallItem,
  FunctionCallItem,
  type InputPart,
  ItemReference,
  LocalShellCallItem,
  MessageItem,
  ReasoningItem,
  ToolOutputItem
} from "../../schema/openai/ResponsesItems.ts"
import type { Message } from "../domain/Conversation.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import { decoderAt, type Fields, looseTools, type ToolSet } from "./OpenAiResponsesTools.ts"
import * as ReasoningCarrier from "./ReasoningCarrier.ts"

/** An item of the input and its place in the request. */
export interface PlacedItem {
  readonly item: Fields
  readonly path: string
}

type Refusal = InvalidRequest | UnsupportedFeature
type AssistantMessage = Extract<Message, { role: "assistant" }>

const decode = {
  message: decoderAt(MessageItem),
  functionCall: decoderAt(FunctionCallItem),
  customCall: decoderAt(CustomToolCallItem),
  output: decoderAt(ToolOutputItem),
  localShellCall: decoderAt(LocalShellCallItem),
  reasoning: decoderAt(ReasoningItem),
  reference: decoderAt(ItemReference),
  additionalTools: decoderAt(Schema.Struct({ ...AdditionalTools.fields, tools: looseTools }))
}

const textTypes: ReadonlySet<string> = new Set(["input_text", "output_text", "text", "summary_text", "reasoning_text"])

/** What an item is; a message may leave its type out. */
const typeOf = (item: Fields): unknown => item["type"] ?? (item["role"] === undefined ? undefined : "message")

const partsText = (
  content: string | ReadonlyArray<InputPart> | null | undefined,
  path: string,
  newest: boolean
): Result.Result<string, Refusal> => {
  if (content === null || content === undefined) return Result.succeed("")
  if (typeof content === "string") return Result.succeed(content.toWellFormed())
  let text = ""
  for (const [index, part] of content.entries()) {
    const field = `${path}.${index}`
    if (part.type === "refusal") text += part.refusal ?? part.text ?? ""
    else if (textTypes.has(part.type)) {
      if (part.text === undefined || part.text === null) {
        return Result.fail(new InvalidRequest({ message: `${field}.text: Missing key`, field: `${field}.text` }))
      }
      text += part.text
    } else if (newest) {
      return Result.fail(
        new UnsupportedFeature({ message: `${field}: only text parts are supported, because the model reads only text`, field })
      )
    } else text += placeholder(part.type)
  }
  return Result.succeed(text.toWellFormed())
}

/** Stands for what earlier turns held and the model cannot read. */
const placeholder = (type: string): string => {
  const kind = /^input_(image|file|audio)$/.exec(type)?.[1] ?? "part"
  return `[${kind} left out: this model reads only text]`
}

const reasoningText = ({ content, encrypted_content, summary }: typeof ReasoningItem.Type): string => {
  const sealed = encrypted_content === undefined || encrypted_content === null ? undefined : ReasoningCarrier.open(encrypted_content)
  if (sealed !== undefined) return sealed
  const parts = content !== undefined && content !== null && content.length > 0 ? content : summary ?? []
  return parts.map((part) => part.text ?? "").join("\n\n").toWellFormed()
}

/** Index of the user message that is still without any answer, where it is the newest one; -1 where there is none. */
const newestTurn = (items: ReadonlyArray<PlacedItem>): number => {
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index]?.item ?? {}
    const type = typeOf(item)
    if (type === "message" && item["role"] === "user") return index
    if (type !== "message" || item["role"] === "assistant") return -1
  }
  return -1
}

/** Items that follow one another as one assistant turn: reasoning, text, calls. */
class AssistantTurn {
  private reasoning: string | undefined
  private content: string | undefined
  private calls: Array<NonNullable<AssistantMessage["toolCalls"]>[number]> = []
  private readonly messages: Array<Message>

  constructor(messages: Array<Message>) {
    this.messages = messages
  }

  addReasoning(text: string): void {
    if (this.content !== undefined || this.calls.length > 0) this.end()
    this.reasoning = this.reasoning === undefined ? text : `${this.reasoning}\n\n${text}`
  }

  addText(text: string): void {
    if (this.content !== undefined || this.calls.length > 0) this.end()
    this.content = text
  }

  addCall(id: string, name: string, args: string): void {
    this.calls.push({ id, name, arguments: args.toWellFormed() })
  }

  end(): void {
    const { calls, content, reasoning } = this
    if (content === undefined && reasoning === undefined && calls.length === 0) return
    this.messages.push({
      role: "assistant",
      content: calls.length === 0 ? content ?? "" : content === "" ? null : content ?? null,
      ...(reasoning === undefined || reasoning === "" ? {} : { reasoning }),
      ...(calls.length === 0 ? {} : { toolCalls: calls })
    })
    this.reasoning = undefined
    this.content = undefined
    this.calls = []
  }
}

/** The tools that come with the items, added to those of the request. */
export const addTools = (items: ReadonlyArray<PlacedItem>, tools: ToolSet): Result.Result<void, Refusal> =>
  Result.gen(function*() {
    for (const { item, path } of items) {
      if (typeOf(item) === "additional_tools") {
        yield* tools.add((yield* decode.additionalTools(item, path)).tools, `${path}.tools`)
      }
    }
  })

/** Items with each reference replaced by the item it names; one that `find` does not know stays as it is. */
export const resolveReferences = (
  items: ReadonlyArray<PlacedItem>,
  find: (id: string) => Fields | undefined
): Result.Result<ReadonlyArray<PlacedItem>, Refusal> =>
  Result.gen(function*() {
    const resolved: Array<PlacedItem> = []
    for (const placed of items) {
      if (typeOf(placed.item) !== "item_reference") resolved.push(placed)
      else resolved.push({ ...placed, item: find((yield* decode.reference(placed.item, placed.path)).id) ?? placed.item })
    }
    return resolved
  })

export interface DecodedItems {
  readonly messages: ReadonlyArray<Message>
  /** Paths of items that do not reach the model. */
  readonly ignored: ReadonlyArray<string>
}

/** Items → messages, in their order. */
export const messagesOf = (items: ReadonlyArray<PlacedItem>, tools: ToolSet): Result.Result<DecodedItems, Refusal> =>
  Result.gen(function*() {
    const messages: Array<Message> = []
    const ignored: Array<string> = []
    const turn = new AssistantTurn(messages)
    const newest = newestTurn(items)
    for (const [index, { item, path }] of items.entries()) {
      switch (typeOf(item)) {
        case undefined:
          return yield* Result.fail(new InvalidRequest({ message: `${path}.type: Missing key`, field: `${path}.type` }))
        case "message": {
          const { content, role } = yield* decode.message(item, path)
          const text = yield* partsText(content, `${path}.content`, index === newest)
          if (role === "assistant") turn.addText(text)
          else {
            turn.end()
            messages.push({ role, content: text })
          }
          break
        }
        case "reasoning":
          turn.addReasoning(reasoningText(yield* decode.reasoning(item, path)))
          break
        case "function_call": {
          const call = yield* decode.functionCall(item, path)
          turn.addCall(call.call_id, tools.modelName(call.name, call.namespace ?? undefined), call.arguments)
          break
        }
        case "custom_tool_call": {
          const call = yield* decode.customCall(item, path)
          turn.addCall(call.call_id, tools.modelName(call.name, call.namespace ?? undefined), JSON.stringify({ input: call.input }))
          break
        }
        case "local_shell_call": {
          const call = yield* decode.localShellCall(item, path)
          turn.addCall(call.call_id, "local_shell", JSON.stringify(call.action))
          break
        }
        case "function_call_output":
        case "custom_tool_call_output":
        case "local_shell_call_output": {
          const output = yield* decode.output(item, path)
          turn.end()
          messages.push({
            role: "tool",
            toolCallId: output.call_id ?? "",
            content: yield* partsText(output.output, `${path}.output`, false)
          })
          break
        }
        case "additional_tools":
          break
        default:
          if (typeof item["type"] !== "string") {
            return yield* Result.fail(new InvalidRequest({ message: `${path}.type: Expected a string`, field: `${path}.type` }))
          }
          ignored.push(path)
      }
    }
    turn.end()
    return { messages, ignored }
  })

/** Items as they are stored and listed: each with a type and an id, text as parts. `newId` makes ids for those without. */
export const storedItems = (items: ReadonlyArray<PlacedItem>, newId: (prefix: string, index: number) => string): ReadonlyArray<Fields> =>
  items.flatMap(({ item }, index) => {
    const type = typeOf(item)
    if (type === "item_reference") return []
    const content = type === "message" && typeof item["content"] === "string"
      ? [{ type: item["role"] === "assistant" ? "output_text" : "input_text", text: item["content"] }]
      : item["content"]
    return [{
      ...item,
      type,
      id: typeof item["id"] === "string" && item["id"] !== "" ? item["id"] : newId(prefixes.get(type) ?? "item", index),
      ...(content === undefined ? {} : { content })
    }]
  })

const prefixes: ReadonlyMap<unknown, string> = new Map([
  ["message", "msg"],
  ["reasoning", "rs"],
  ["function_call", "fc"],
  ["function_call_output", "fco"],
  ["custom_tool_call", "ctc"],
  ["custom_tool_call_output", "ctco"]
])
