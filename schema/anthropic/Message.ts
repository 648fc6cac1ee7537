import { Schema } from "effect"
import { CacheTimings, PromptProgress, Timings } from "../openai/Common.ts"
import { AnthropicError } from "./Error.ts"

const index = Schema.Int.annotate({ description: "Content block number." })

export const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })

export const ThinkingBlock = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: Schema.String.annotate({ description: "mashbox-local; with the text of thinking that was omitted." })
})

export const ToolUseBlock = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: Schema.String.annotate({ description: "toolu_..." }),
  name: Schema.String.annotate({ description: "Tool name." }),
  input: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: "Arguments. Text that is no JSON object comes as {\"INVALID_JSON\": text}."
  })
})

export const ContentBlock = Schema.Union([TextBlock, ThinkingBlock, ToolUseBlock]).annotate({ identifier: "ContentBlock" })
export type ContentBlock = typeof ContentBlock.Type

export const MessageUsage = Schema.Struct({
  input_tokens: Schema.Int.annotate({ description: "Prompt tokens not served from the prefix cache." }),
  cache_read_input_tokens: Schema.Int.annotate({
    description: "Prompt tokens served from the prefix cache; 0 in message_start, which comes before they are known."
  }),
  cache_creation_input_tokens: Schema.Int.annotate({ description: "Always 0." }),
  output_tokens: Schema.Int.annotate({ description: "New tokens." }),
  output_tokens_details: Schema.optionalKey(
    Schema.Struct({ thinking_tokens: Schema.Int.annotate({ description: "New tokens spent on thinking, its tags included." }) })
  ),
  timings: Schema.optionalKey(Schema.Struct({ ...Timings.fields, ...CacheTimings.fields }))
}).annotate({ identifier: "MessageUsage" })
export type MessageUsage = typeof MessageUsage.Type

export const stopReasons = ["end_turn", "max_tokens", "stop_sequence", "tool_use"] as const
const stopReason = Schema.NullOr(Schema.Literals(stopReasons)).annotate({
  description: "end_turn, max_tokens, stop_sequence or tool_use; null in message_start."
})
const stopSequence = Schema.NullOr(Schema.String).annotate({ description: "The stop sequence that ended the text." })

export const Message = Schema.Struct({
  id: Schema.String.annotate({ description: "msg_..." }),
  type: Schema.Literal("message"),
  role: Schema.Literal("assistant"),
  model: Schema.String.annotate({ description: "The model field of the request, else the model id." }),
  content: Schema.Array(ContentBlock),
  stop_reason: stopReason,
  stop_sequence: stopSequence,
  usage: MessageUsage
}).annotate({ identifier: "Message" })
export type Message = typeof Message.Type

export const MessageStreamEvent = Schema.Union([
  Schema.Struct({ type: Schema.Literal("message_start"), message: Message }),
  Schema.Struct({ type: Schema.Literal("ping"), prompt_progress: Schema.optionalKey(PromptProgress) }),
  Schema.Struct({ type: Schema.Literal("content_block_start"), index, content_block: ContentBlock }),
  Schema.Struct({
    type: Schema.Literal("content_block_delta"),
    index,
    delta: Schema.Union([
      Schema.Struct({ type: Schema.Literal("text_delta"), text: Schema.String }),
      Schema.Struct({ type: Schema.Literal("thinking_delta"), thinking: Schema.String }),
      Schema.Struct({ type: Schema.Literal("signature_delta"), signature: Schema.String }),
      Schema.Struct({ type: Schema.Literal("input_json_delta"), partial_json: Schema.String })
    ])
  }),
  Schema.Struct({ type: Schema.Literal("content_block_stop"), index }),
  Schema.Struct({
    type: Schema.Literal("message_delta"),
    delta: Schema.Struct({ stop_reason: stopReason, stop_sequence: stopSequence }),
    usage: MessageUsage
  }),
  Schema.Struct({ type: Schema.Literal("message_stop") }),
  AnthropicError
]).annotate({
  identifier: "MessageStreamEvent",
  description:
    "One `event:` + `data:` pair: message_start, ping, then per block content_block_start / _delta / _stop, then message_delta and message_stop. While there is no output, ping is repeated. A failure after the stream started is an error event that ends it."
})
export type MessageStreamEvent = typeof MessageStreamEvent.Type

export const TokenCount = Schema.Struct({
  input_tokens: Schema.Int.annotate({ description: "Prompt tokens after the chat template." })
}).annotate({ identifier: "TokenCount" })
export type TokenCount = typeof TokenCount.Type

export const Hello = Schema.Struct({ message: Schema.String }).annotate({ identifier: "Hello" })
