import { Schema } from "effect"
import { count, samplingFields, streamFields } from "../openai/Common.ts"

const optionalText = (description: string) => Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description }))

const inert = (description = "Accepted and ignored.") => Schema.optionalKey(Schema.Unknown).annotateKey({ description })

const blockType = Schema.String.annotate({ expected: "the type of a content block" })

/** A block inside a tool_result or a document. */
export const NestedBlock = Schema.Struct({
  type: blockType.annotate({ description: "text, image, tool_reference, document or search_result." }),
  text: optionalText("text: the text."),
  tool_name: optionalText("tool_reference: a tool of the request that may be called from here on."),
  source: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "image, document: where its content is; search_result: its address."
  }),
  title: optionalText("document, search_result: its title."),
  context: optionalText("document: what it is about."),
  content: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "search_result: text blocks." })
})
export type NestedBlock = typeof NestedBlock.Type

/** One block of a message. Which fields it has depends on its type; the others are ignored. */
export const RequestBlock = Schema.Struct({
  type: blockType.annotate({
    description:
      "text, thinking, redacted_thinking, tool_use, tool_result, image, document, search_result, tool_addition or tool_removal. The model reads text only: an image or another block it cannot read is refused with 400 in the newest turn, and becomes a visible placeholder in history and in tool results."
  }),
  text: optionalText("text: the text."),
  thinking: optionalText("thinking: earlier thinking."),
  signature: optionalText("thinking: as this server sent it; it restores thinking that was omitted. Any other value is accepted."),
  data: optionalText("redacted_thinking: accepted and left out of the prompt."),
  id: optionalText("tool_use: the call's id."),
  name: optionalText("tool_use: the tool's name."),
  input: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "tool_use: the arguments, an object." }),
  tool_use_id: optionalText("tool_result: the call this answers."),
  tool_name: optionalText("tool_addition, tool_removal: a tool of the request."),
  content: Schema.optionalKey(
    Schema.NullOr(
      Schema.Union([Schema.String, Schema.Array(NestedBlock), Schema.Record(Schema.String, Schema.Unknown)])
    ).annotate({
      expected: "a string or a list of content blocks",
      description: "tool_result: a string, or text, image and tool_reference blocks."
    })
  ),
  is_error: Schema.optionalKey(Schema.NullOr(Schema.Boolean).annotate({ description: "tool_result: the call failed." })),
  source: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "image, document: where its content is." }),
  title: optionalText("document, search_result: its title."),
  context: optionalText("document: what it is about."),
  cache_control: inert("Accepted and ignored, here and everywhere: every prompt is cached.")
}).annotate({ identifier: "RequestContentBlock" })
export type RequestBlock = typeof RequestBlock.Type

export const efforts = ["low", "medium", "high", "xhigh", "max"] as const

const outputFormat = Schema.Struct({
  type: Schema.String.annotate({ description: "json_schema" }),
  schema: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "JSON Schema. A keyword that cannot be enforced gets 400 with its path."
  })
})

const outputConfig = Schema.Struct({
  effort: Schema.optionalKey(
    Schema.NullOr(Schema.Literals(efforts)).annotate({
      expected: `one of ${efforts.join(", ")}`,
      description:
        "Given to the chat template as reasoning_effort; where that acts on no effort, low, medium and high limit the thinking to 1024, 8192 and 24576 tokens."
    })
  ),
  format: Schema.optionalKey(
    Schema.NullOr(outputFormat.annotate({ description: "The text of the answer satisfies this schema, enforced while it is decoded." }))
  )
})

export const RequestMessage = Schema.Struct({
  role: Schema.Literals(["user", "assistant", "system", "developer"]).annotate({
    expected: "one of user, assistant, system, developer",
    description: "user or assistant (system also accepted, and rendered where it stands)."
  }),
  content: Schema.Union([Schema.String, Schema.Array(RequestBlock)]).annotate({
    expected: "a string or a list of content blocks",
    description: "Text, or content blocks."
  }),
  output_config: Schema.optionalKey(
    Schema.NullOr(outputConfig).annotate({ description: "effort from this message on; the last message that has one counts." })
  )
}).annotate({ identifier: "RequestMessage" })
export type RequestMessage = typeof RequestMessage.Type

export const RequestTool = Schema.Struct({
  name: Schema.optionalKey(Schema.String.annotate({ description: "Tool name. Needed but for server tools." })),
  type: optionalText("custom or absent; tools of other types (web search and others) are ignored."),
  description: optionalText("What the tool does."),
  input_schema: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "JSON Schema of the input, an object." }),
  defer_loading: Schema.optionalKey(
    Schema.NullOr(Schema.Boolean).annotate({
      description: "The tool is left out of the prompt's tool list; its definition stands where a tool_reference names it."
    })
  ),
  strict: Schema.optionalKey(
    Schema.NullOr(Schema.Boolean).annotate({
      description: "true: arguments follow the schema for sure; a keyword that cannot be held is refused by its path: 400."
    })
  ),
  cache_control: inert(),
  eager_input_streaming: inert("Accepted: input always streams as it is written.")
})
export type RequestTool = typeof RequestTool.Type

/** What a prompt is made of: the fields that both routes read. */
export const promptFields = {
  model: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(256)).annotate({
      expected: "a string of at most 256 characters",
      description: "Accepted for compatibility; the server answers with the one model it runs."
    })
  ),
  messages: Schema.Array(RequestMessage).check(Schema.isMinLength(1)).annotate({
    expected: "a list of at least one message",
    description: "The conversation. Where it ends with text of the assistant, the answer goes on from there."
  }),
  system: Schema.optionalKey(
    Schema.Union([Schema.String, Schema.Array(RequestBlock)]).annotate({
      expected: "a string or a list of text blocks",
      description:
        "System prompt: a string or text blocks. A first block with Claude Code's x-anthropic-billing-header, which differs between sessions, is left out of the prompt."
    })
  ),
  tools: Schema.optionalKey(Schema.Array(RequestTool).annotate({ description: "Client tools the model may call." })),
  tool_choice: Schema.optionalKey(
    Schema.Struct({
      type: Schema.Literals(["auto", "any", "tool", "none"]).annotate({
        expected: "one of auto, any, tool, none",
        description: "auto (default); none: no tools; any: the answer is calls; tool: it is one call of the tool with this name."
      }),
      name: optionalText("tool: its name."),
      disable_parallel_tool_use: Schema.optionalKey(
        Schema.NullOr(Schema.Boolean).annotate({ description: "true: the answer ends with its first tool call." })
      )
    }).annotate({ description: "{\"type\": \"auto\" | \"any\" | \"tool\" | \"none\", \"name\": ...}." })
  ),
  thinking: Schema.optionalKey(
    Schema.Struct({
      type: Schema.Literals(["enabled", "adaptive", "disabled"]).annotate({
        expected: "one of enabled, adaptive, disabled",
        description: "enabled or adaptive turns thinking on."
      }),
      budget_tokens: Schema.optionalKey(
        Schema.NullOr(Schema.Finite).annotate({
          expected: "a number",
          description:
            "Tokens of thinking after which the model is made to answer; negative: no limit. It holds where a token of the vocabulary ends thinking."
        })
      ),
      display: optionalText("omitted: thinking blocks come without their text, which their signature carries. Otherwise the text is sent.")
    })
  ),
  output_config: Schema.optionalKey(
    outputConfig.annotate({
      description: "effort is given to the chat template, and format holds the answer to a schema."
    })
  ),
  thread: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "Not supported: message threads, answered with 400 and details.error_code thread_unsupported_request."
  })
}

/** Fields that clients send and that change nothing about the answer. */
export const inertFields = {
  prompt_cache_key: inert("Tags the request's session in the server log (as the X-Session-Id header does)."),
  metadata: inert("user_id may be JSON with a session_id, which tags the request's session in the server log; otherwise ignored."),
  service_tier: inert(),
  context_management: inert(),
  safeguards: inert("Accepted and ignored: this server makes no safety verdicts."),
  betas: inert(),
  container: inert(),
  mcp_servers: inert(),
  inference_geo: inert(),
  speed: inert()
}

export const MessagesRequest = Schema.Struct({
  ...promptFields,
  stream: streamFields.stream,
  ...samplingFields,
  return_progress: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "In a stream, ping events with prompt_progress tell how far the prompt is prefilled (llama-server's name).",
      default: false
    })
  ),
  output_format: Schema.optionalKey(outputFormat.annotate({ description: "Same as output_config.format, under its older name." })),
  n: Schema.optionalKey(count(1).annotate({ description: "Must be 1." })),
  ...inertFields
}).annotate({ identifier: "MessagesRequest" })
export type MessagesRequest = typeof MessagesRequest.Type

export const CountTokensRequest = Schema.Struct(promptFields).annotate({
  identifier: "CountTokensRequest",
  description: "As in MessagesRequest. Fields about the output are accepted and ignored."
})
export type CountTokensRequest = typeof CountTokensRequest.Type
