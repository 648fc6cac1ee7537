import { Schema } from "effect"
import { count, inertFields, samplingFields, streamFields, Timings, Usage } from "./Common.ts"

const ToolCall = Schema.Struct({
  id: Schema.String.annotate({ description: "Call id." }),
  type: Schema.optionalKey(Schema.Literal("function").annotate({ description: "function" })),
  function: Schema.Struct({
    name: Schema.String.annotate({ description: "Tool name." }),
    arguments: Schema.String.annotate({ description: "Arguments as a JSON string." })
  })
})

const ContentPart = Schema.Struct({
  type: Schema.String.annotate({ description: "text (or refusal); parts of any other kind are refused." }),
  text: Schema.optionalKey(Schema.String),
  refusal: Schema.optionalKey(Schema.String)
})

export const ChatMessage = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool", "function"]).annotate({
    expected: "one of system, developer, user, assistant, tool, function",
    description: "system and developer join the system prompt."
  }),
  content: Schema.optionalKey(
    Schema.NullOr(Schema.Union([Schema.String, Schema.Array(ContentPart)])).annotate({
      description: "Text, or a list of text parts. Text parts only: image, audio and file parts are refused with 400 (text-only model)."
    })
  ),
  tool_calls: Schema.optionalKey(
    Schema.NullOr(Schema.Array(ToolCall)).annotate({ description: "assistant: the calls it made." })
  ),
  tool_call_id: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "tool: the call this answers." })),
  reasoning_content: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "assistant: its earlier thinking." })),
  name: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "Given to the chat template." }))
}).annotate({ identifier: "ChatMessage" })
export type ChatMessage = typeof ChatMessage.Type

const Tool = Schema.Struct({
  type: Schema.optionalKey(Schema.String.annotate({ description: "function" })),
  function: Schema.optionalKey(Schema.Struct({
    name: Schema.String.annotate({ description: "Tool name." }),
    description: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "What the tool does." })),
    parameters: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "JSON Schema of the arguments." })
  }))
})

export const reasoningEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const
const effort = Schema.Literals(reasoningEfforts).annotate({ expected: `one of ${reasoningEfforts.join(", ")}` })

export const ChatCompletionRequest = Schema.Struct({
  model: Schema.optionalKey(Schema.String.annotate({
    description: "The id that GET /v1/models shows; another one gets 404. Leaving it out means the one model this server runs."
  })),
  messages: Schema.Array(ChatMessage).check(Schema.isMinLength(1)).annotate({
    expected: "a list of at least one message",
    description: "The conversation."
  }),
  tools: Schema.optionalKey(
    Schema.Array(Tool).annotate({
      description: "Function tools the model may call. Not supported yet: a non-empty list gets 400 unless tool_choice is none."
    })
  ),
  tool_choice: Schema.optionalKey(
    Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]).annotate({
      expected: "a string or an object",
      description: "auto (default), none, required, or {\"type\": \"function\", \"function\": {\"name\": ...}}."
    })
  ),
  ...streamFields,
  chat_template_kwargs: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Unknown).annotate({
      description:
        "Chat template options: booleans, numbers and plain words, for example {\"enable_thinking\": true}. They cannot replace the conversation."
    })
  ),
  enable_thinking: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Same as chat_template_kwargs.enable_thinking, which wins when both are set: think before answering.",
      default: false
    })
  ),
  reasoning: Schema.optionalKey(
    Schema.Struct({ effort: Schema.optionalKey(Schema.NullOr(effort)) }).annotate({
      description: "Reasoning effort control: {\"effort\": \"medium\"}; none turns thinking off, any other effort turns it on."
    })
  ),
  reasoning_effort: Schema.optionalKey(effort.annotate({ description: "Same as reasoning.effort, and wins when both are set." })),
  ...inertFields,
  logprobs: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Not supported (log probabilities): true gets 400 naming the field." })
  ),
  top_logprobs: Schema.optionalKey(
    count(0).annotate({ description: "Not supported (log probabilities): a value above 0 gets 400 naming the field." })
  ),
  response_format: Schema.optionalKey(
    Schema.Struct({ type: Schema.String }).annotate({
      description: "Only {\"type\": \"text\"}. Not supported: json_object and json_schema (structured output), answered with 400."
    })
  ),
  ...samplingFields,
  n: Schema.optionalKey(count(1).annotate({ description: "Must be 1." }))
}).annotate({ identifier: "ChatCompletionRequest" })
export type ChatCompletionRequest = typeof ChatCompletionRequest.Type

const created = Schema.Int.annotate({ description: "Unix time." })
const model = Schema.String.annotate({ description: "Model id." })
const finishReason = Schema.Literals(["stop", "length", "tool_calls"])

export const ChatCompletion = Schema.Struct({
  id: Schema.String.annotate({ description: "chatcmpl-..." }),
  object: Schema.Literal("chat.completion"),
  created,
  model,
  choices: Schema.Array(Schema.Struct({
    index: Schema.Int.annotate({ description: "0." }),
    message: Schema.Struct({
      role: Schema.Literal("assistant"),
      content: Schema.NullOr(Schema.String).annotate({ description: "The answer (null when it only calls tools)." }),
      reasoning_content: Schema.optionalKey(Schema.String.annotate({ description: "Thinking, when thinking is on." })),
      tool_calls: Schema.optionalKey(Schema.Array(ToolCall))
    }),
    finish_reason: finishReason.annotate({ description: "stop, length or tool_calls." }),
    logprobs: Schema.Null
  })),
  usage: Usage,
  timings: Schema.optionalKey(Timings)
}).annotate({ identifier: "ChatCompletion" })
export type ChatCompletion = typeof ChatCompletion.Type

export const ChatCompletionChunk = Schema.Struct({
  id: Schema.String.annotate({ description: "Same id on every chunk." }),
  object: Schema.Literal("chat.completion.chunk"),
  created,
  model,
  choices: Schema.Array(Schema.Struct({
    index: Schema.Int.annotate({ description: "0." }),
    delta: Schema.Struct({
      role: Schema.optionalKey(Schema.Literal("assistant").annotate({ description: "First chunk only." })),
      content: Schema.optionalKey(Schema.String.annotate({ description: "New text." })),
      reasoning_content: Schema.optionalKey(Schema.String.annotate({ description: "New thinking." })),
      tool_calls: Schema.optionalKey(Schema.Array(Schema.Struct({
        index: Schema.Int.annotate({ description: "Call number." }),
        id: Schema.optionalKey(Schema.String.annotate({ description: "Call id." })),
        type: Schema.optionalKey(Schema.Literal("function")),
        function: Schema.optionalKey(Schema.Struct({
          name: Schema.optionalKey(Schema.String.annotate({ description: "Tool name." })),
          arguments: Schema.optionalKey(Schema.String.annotate({ description: "A piece of the arguments, JSON." }))
        }))
      })))
    }),
    finish_reason: Schema.NullOr(finishReason).annotate({ description: "null until the last chunk." })
  })),
  usage: Schema.optionalKey(Usage),
  timings: Schema.optionalKey(Timings)
}).annotate({
  identifier: "ChatCompletionChunk",
  description:
    "One `data:` line. The stream ends with `data: [DONE]`. With stream_options.include_usage the last chunk has empty choices and usage. The chunk with the finish_reason, and the usage chunk, carry timings. A failure after the first byte is a `data: {\"error\": {...}}` line that ends the stream."
})
export type ChatCompletionChunk = typeof ChatCompletionChunk.Type
