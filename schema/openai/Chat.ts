import { Schema } from "effect"
import { count, inertFields, PromptProgress, samplingFields, streamFields, Timings, Usage } from "./Common.ts"
import { formatFields, responseFormatField } from "./FormatFields.ts"
import { stopReason, tokenFields, tokenIds, TokenLogprob, topLogprobs } from "./TokenFields.ts"

const ToolCall = Schema.Struct({
  id: Schema.String.annotate({ description: "Call id." }),
  type: Schema.Literal("function").annotate({ description: "function" }),
  function: Schema.Struct({
    name: Schema.String.annotate({ description: "Tool name." }),
    arguments: Schema.String.annotate({ description: "Arguments as a JSON string." })
  })
})

const callArguments = Schema.optionalKey(
  Schema.NullOr(Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)])).annotate({
    expected: "a JSON string or an object",
    description: "Arguments as a JSON string (an object is taken too)."
  })
)

const EarlierToolCall = Schema.Struct({
  id: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "Call id." })),
  type: Schema.optionalKey(Schema.Literal("function").annotate({ description: "function" })),
  function: Schema.Struct({ name: Schema.String.annotate({ description: "Tool name." }), arguments: callArguments })
})

const ContentPart = Schema.Struct({
  type: Schema.String.annotate({ description: "text, input_text, output_text or refusal; any other kind is no text." }),
  text: Schema.optionalKey(Schema.String),
  refusal: Schema.optionalKey(Schema.String)
})
export type ChatContentPart = typeof ContentPart.Type

export const ChatMessage = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool", "function"]).annotate({
    expected: "one of system, developer, user, assistant, tool, function",
    description:
      "system and developer stand where they are, or join the system prompt where the model's template takes none there; function is the older name of tool."
  }),
  content: Schema.optionalKey(
    Schema.NullOr(Schema.Union([Schema.String, Schema.Array(ContentPart)])).annotate({
      description:
        "Text, or a list of text parts. Image, audio and file parts are refused with 400 in the newest turn of the user (text-only model); in earlier turns and in results of tools a note stands in their place."
    })
  ),
  tool_calls: Schema.optionalKey(
    Schema.NullOr(Schema.Array(EarlierToolCall)).annotate({ description: "assistant: the calls it made." })
  ),
  function_call: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ name: Schema.String, arguments: callArguments })).annotate({
      description: "assistant: the older form of tool_calls."
    })
  ),
  tool_call_id: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "tool: the call this answers." })),
  reasoning_content: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "assistant: its earlier thinking." })),
  reasoning: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "assistant: same as reasoning_content, where that is absent and this is a string."
  }),
  name: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "Given to the chat template." }))
}).annotate({ identifier: "ChatMessage" })
export type ChatMessage = typeof ChatMessage.Type

const functionFields = {
  name: Schema.optionalKey(Schema.String.annotate({ description: "Tool name." })),
  description: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "What the tool does." })),
  parameters: Schema.optionalKey(
    Schema.NullOr(Schema.Union([Schema.Boolean, Schema.Record(Schema.String, Schema.Unknown)])).annotate({
      expected: "a JSON Schema",
      description: "JSON Schema of the arguments."
    })
  ),
  strict: Schema.optionalKey(
    Schema.NullOr(Schema.Boolean).annotate({
      description: "true: arguments follow the schema for sure; a keyword that cannot be held is refused by its path: 400."
    })
  )
}

const Tool = Schema.Struct({
  type: Schema.optionalKey(
    Schema.String.annotate({ description: "function; tools of any other type are ignored and named in x-mashbox-ignored." })
  ),
  function: Schema.optionalKey(Schema.Struct(functionFields)),
  ...functionFields
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
      description: "Function tools the model may call."
    })
  ),
  tool_choice: Schema.optionalKey(
    Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]).annotate({
      expected: "a string or an object",
      description:
        "auto (default), none, required, {\"type\": \"function\", \"function\": {\"name\": ...}} for one call of that function, or {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": \"auto\" | \"required\", \"tools\": [...]}}. Forced calls are held to the tools' schemas while they are decoded."
    })
  ),
  parallel_tool_calls: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "false: the answer ends with its first tool call.", default: true })
  ),
  functions: Schema.optionalKey(
    Schema.Array(Schema.Struct(functionFields)).annotate({
      description:
        "The older form of tools, not beside them: the answer has at most one call, in message.function_call, and then the finish_reason function_call."
    })
  ),
  function_call: Schema.optionalKey(
    Schema.Union([Schema.Literals(["auto", "none"]), Schema.Struct({ name: Schema.String })]).annotate({
      expected: "auto, none, or an object with the name of a function",
      description: "The older form of tool_choice, for functions: auto (default), none, or {\"name\": ...}."
    })
  ),
  modalities: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({ description: "Only text; anything else gets 400 naming the field." })
  ),
  return_progress: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "In a stream, chunks with prompt_progress tell how far the prompt is prefilled (llama-server's name).",
      default: false
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
    Schema.Struct({
      effort: Schema.optionalKey(Schema.NullOr(effort)),
      max_tokens: Schema.optionalKey(
        Schema.NullOr(count(-1)).annotate({
          description:
            "Tokens of thinking after which the model is made to answer; negative: no limit. It holds where a token of the vocabulary ends thinking."
        })
      )
    }).annotate({
      description:
        "Reasoning effort control: {\"effort\": \"medium\"}; none turns thinking off, any other effort turns it on. Where the chat template acts on no effort, minimal, low, medium and high limit the thinking to 512, 1024, 8192 and 24576 tokens."
    })
  ),
  reasoning_effort: Schema.optionalKey(effort.annotate({ description: "Same as reasoning.effort, and wins when both are set." })),
  thinking_token_budget: Schema.optionalKey(
    count(-1).annotate({
      description: "Same as reasoning.max_tokens, which wins when both are set (vLLM's name)."
    })
  ),
  thinking_budget_tokens: Schema.optionalKey(
    count(-1).annotate({
      description: "Same as reasoning.max_tokens, used when neither of the others is set (llama-server's name)."
    })
  ),
  ...inertFields,
  logprobs: Schema.optionalKey(
    Schema.Boolean.annotate({
      description:
        "Give the log probabilities of the answer's tokens. Where tools or a format hold the output, they are those among the tokens that may come, and every token is drawn.",
      default: false
    })
  ),
  top_logprobs: Schema.optionalKey(
    topLogprobs.annotate({ description: "With logprobs: how many of the likeliest tokens to give in place of each.", default: 0 })
  ),
  ...responseFormatField,
  ...samplingFields,
  ...tokenFields,
  ...formatFields,
  add_generation_prompt: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "false: the prompt ends with the last message, without the beginning of an answer.",
      default: true
    })
  ),
  continue_final_message: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Go on with the last message, which must be the assistant's, instead of a new one.",
      default: false
    })
  ),
  echo: Schema.optionalKey(Schema.Boolean.annotate({ description: "Not supported: true gets 400 naming the field.", default: false })),
  add_special_tokens: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Not supported: true gets 400 naming the field; the chat template puts its own special tokens.",
      default: false
    })
  ),
  n: Schema.optionalKey(
    count(1).annotate({
      description:
        "Answers to the same prompt, decoded together, with the seeds seed, seed + 1, ...; more than the server's slots gets 400.",
      default: 1
    })
  )
}).annotate({ identifier: "ChatCompletionRequest" })
export type ChatCompletionRequest = typeof ChatCompletionRequest.Type

const created = Schema.Int.annotate({ description: "Unix time." })
const model = Schema.String.annotate({ description: "Model id." })
const logprobs = Schema.NullOr(
  Schema.Struct({ content: Schema.NullOr(Schema.Array(TokenLogprob)), refusal: Schema.Null })
).annotate({ description: "With logprobs: those of the content's tokens." })
const choiceExtras = {
  stop_reason: Schema.optionalKey(stopReason.annotate({ description: "The stop string or the one of stop_token_ids that ended it." })),
  token_ids: Schema.optionalKey(tokenIds.annotate({ description: "With return_token_ids: every new token." }))
}
const promptTokenIds = Schema.optionalKey(tokenIds.annotate({ description: "With return_token_ids: the prompt's tokens." }))
const finishReason = Schema.Literals(["stop", "length", "tool_calls", "function_call"])

export const ChatCompletion = Schema.Struct({
  id: Schema.String.annotate({ description: "chatcmpl-..." }),
  object: Schema.Literal("chat.completion"),
  created,
  model,
  choices: Schema.Array(Schema.Struct({
    index: Schema.Int.annotate({ description: "Which of the n choices, from 0." }),
    message: Schema.Struct({
      role: Schema.Literal("assistant"),
      content: Schema.NullOr(Schema.String).annotate({ description: "The answer (null when it only calls tools)." }),
      reasoning_content: Schema.optionalKey(Schema.String.annotate({ description: "Thinking, when thinking is on." })),
      tool_calls: Schema.optionalKey(Schema.Array(ToolCall)),
      function_call: Schema.optionalKey(ToolCall.fields.function.annotate({ description: "The call, where the request has functions." }))
    }),
    finish_reason: finishReason.annotate({ description: "stop, length, tool_calls, or function_call where the request has functions." }),
    logprobs,
    ...choiceExtras
  })),
  prompt_token_ids: promptTokenIds,
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
    index: Schema.Int.annotate({ description: "Which of the n choices, from 0." }),
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
      }))),
      function_call: Schema.optionalKey(Schema.Struct({
        name: Schema.optionalKey(Schema.String.annotate({ description: "Function name, in the first piece." })),
        arguments: Schema.String.annotate({ description: "A piece of the arguments, JSON." })
      }))
    }),
    finish_reason: Schema.NullOr(finishReason).annotate({ description: "null until the last chunk." }),
    logprobs: Schema.optionalKey(logprobs),
    ...choiceExtras
  })),
  prompt_token_ids: promptTokenIds,
  usage: Schema.optionalKey(Usage),
  timings: Schema.optionalKey(Timings),
  prompt_progress: Schema.optionalKey(
    PromptProgress.annotate({ description: "With return_progress, on chunks with an empty delta: how far the prompt is prefilled." })
  )
}).annotate({
  identifier: "ChatCompletionChunk",
  description:
    "One `data:` line. The stream ends with `data: [DONE]`. With stream_options.include_usage the last chunk has empty choices and usage; with continuous_usage_stats too, every chunk has usage. The chunk with the finish_reason, and the usage chunk, carry timings. A failure after the first byte is a `data: {\"error\": {...}}` line that ends the stream."
})
export type ChatCompletionChunk = typeof ChatCompletionChunk.Type
