import { Schema } from "effect"
import { count, inertFields, samplingFields, streamFields, Usage } from "./Common.ts"
import { EchoedTool, InputItem, ResponsesTool } from "./ResponsesItems.ts"

const inert = (description: string) => Schema.optionalKey(Schema.Unknown).annotateKey({ description })

/** Fields that clients send and that change nothing about the answer. */
export const inertResponsesFields = {
  merge: inertFields.merge,
  prompt_cache_key: inertFields.prompt_cache_key,
  user: inertFields.user,
  service_tier: inertFields.service_tier,
  client_metadata: inert("Accepted and ignored."),
  safety_identifier: inert("Accepted and ignored."),
  prompt_cache_retention: inert("Accepted and ignored."),
  max_tool_calls: inert("Accepted and ignored: it is about hosted tools, which this server has none of."),
  stream_options: inert("Accepted and ignored: streams are not padded.")
}

const { stop, stop_sequences, temperature, top_p, ...otherSampling } = samplingFields

const inputFields = {
  model: Schema.optionalKey(Schema.String.annotate({
    description: "The id that GET /v1/models shows; another one gets 404. Leaving it out means the one model this server runs."
  })),
  input: Schema.Union([Schema.String, Schema.Array(InputItem)]).annotate({
    description:
      "A string, or items: message (system, developer, user, assistant), function_call, function_call_output, custom_tool_call, custom_tool_call_output, local_shell_call, local_shell_call_output, reasoning, item_reference, additional_tools."
  }),
  instructions: Schema.optionalKey(
    Schema.String.annotate({ description: "System prompt, before everything else. Not carried over by previous_response_id." })
  ),
  previous_response_id: Schema.optionalKey(
    Schema.String.annotate({
      description: "A stored response whose input and output come before this input; 404 where it is not (or no longer) stored."
    })
  ),
  tools: Schema.optionalKey(Schema.Array(ResponsesTool)),
  tool_choice: Schema.optionalKey(
    Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]).annotate({
      expected: "a string or an object",
      description: "auto (default), none, required, a function or custom tool by type and name, or allowed_tools with a mode and tools."
    })
  ),
  parallel_tool_calls: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "false: the answer ends with its first call.", default: true })
  ),
  reasoning: Schema.optionalKey(
    Schema.Struct({
      effort: Schema.optionalKey(
        Schema.NullOr(Schema.String).annotate({ description: "Any value but none or minimal turns thinking on." })
      ),
      summary: Schema.optionalKey(
        Schema.NullOr(Schema.String).annotate({
          description:
            "auto, concise or detailed: the reasoning comes as the item's summary, in whole; otherwise as its content (reasoning_text)."
        })
      ),
      generate_summary: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "Older name of summary." }))
    })
  ),
  text: Schema.optionalKey(
    Schema.Struct({
      format: Schema.optionalKey(
        Schema.NullOr(
          Schema.Struct({
            type: Schema.String,
            name: Schema.optionalKey(Schema.NullOr(Schema.String)),
            description: Schema.optionalKey(Schema.NullOr(Schema.String)),
            schema: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "json_schema: the schema." }),
            strict: Schema.optionalKey(
              Schema.NullOr(Schema.Boolean).annotate({ description: "Every schema is enforced, so that true and false are the same." })
            )
          })
        )
      ).annotateKey({
        description:
          "text, json_object (any JSON object) or json_schema: the text satisfies the schema, enforced while it is decoded. A keyword that cannot be enforced gets 400 with its path."
      }),
      verbosity: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: "Accepted and ignored." }))
    })
  ),
  truncation: Schema.optionalKey(
    Schema.String.annotate({ description: "disabled; nothing is ever truncated, so auto is accepted and ignored.", default: "disabled" })
  ),
  conversation: inert("Not supported: 400. Use previous_response_id."),
  prompt: inert("Not supported: 400. Prompt templates live at OpenAI.")
}

export const ResponsesRequest = Schema.Struct({
  ...inputFields,
  stream: streamFields.stream,
  store: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Keep the response for GET /v1/responses/{id}, previous_response_id and item_reference.",
      default: true
    })
  ),
  include: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description:
        "reasoning.encrypted_content: reasoning items carry the reasoning as an opaque text to send back. message.output_text.logprobs: log probabilities of the text's tokens. Others are accepted and ignored."
    })
  ),
  metadata: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])).annotate({
      description: "Echoed in the response."
    })
  ),
  background: Schema.optionalKey(Schema.Boolean.annotate({ description: "Not supported: true gets 400 naming the field." })),
  top_logprobs: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 })).annotate({
      expected: "an integer from 0 to 20",
      description: "Log probabilities of the text's tokens, with this many alternatives each."
    })
  ),
  n: Schema.optionalKey(count(1).annotate({ description: "Must be 1." })),
  temperature,
  top_p,
  stop,
  stop_sequences,
  ...otherSampling,
  ...inertResponsesFields
}).annotate({ identifier: "ResponsesRequest" })

/** Body of `POST /v1/responses/input_tokens`; fields that only steer the answer are ignored. */
export const InputTokensRequest = Schema.Struct(inputFields).annotate({ identifier: "InputTokensRequest" })

const id = Schema.String.annotate({ description: "Item id." })
const status = Schema.Literals(["in_progress", "completed", "incomplete"])

export const OutputText = Schema.Struct({
  type: Schema.Literal("output_text"),
  text: Schema.String,
  annotations: Schema.Array(Schema.Unknown).annotate({ description: "Empty." }),
  logprobs: Schema.Array(Schema.Unknown).annotate({ description: "Where include or top_logprobs asks for them, else empty." })
})

const call = {
  id,
  call_id: Schema.String.annotate({ description: "Call id to answer with an *_output item." }),
  name: Schema.String.annotate({ description: "Tool name." }),
  namespace: Schema.optionalKey(Schema.String.annotate({ description: "The namespace tool it came from." })),
  status
}

/** An item of an answer. */
export const OutputItem = Schema.Union([
  Schema.Struct({
    id,
    type: Schema.Literal("message"),
    status,
    role: Schema.Literal("assistant"),
    content: Schema.Array(OutputText)
  }),
  Schema.Struct({
    id,
    type: Schema.Literal("reasoning"),
    status,
    summary: Schema.Array(Schema.Struct({ type: Schema.Literal("summary_text"), text: Schema.String })).annotate({
      description: "The reasoning where a summary was asked for, else empty."
    }),
    content: Schema.optionalKey(
      Schema.Array(Schema.Struct({ type: Schema.Literal("reasoning_text"), text: Schema.String })).annotate({
        description: "The reasoning where no summary was asked for."
      })
    ),
    encrypted_content: Schema.optionalKey(Schema.String.annotate({ description: "Where include names it." }))
  }),
  Schema.Struct({
    ...call,
    type: Schema.Literal("function_call"),
    arguments: Schema.String.annotate({ description: "JSON text." })
  }),
  Schema.Struct({ ...call, type: Schema.Literal("custom_tool_call"), input: Schema.String.annotate({ description: "Raw input." }) })
]).annotate({ identifier: "ResponseItem" })
export type OutputItem = typeof OutputItem.Type

const ResponsesUsage = Schema.Struct({
  input_tokens: Schema.Int.annotate({ description: "Prompt tokens, cached ones included." }),
  input_tokens_details: Schema.Struct({
    cached_tokens: Schema.Int.annotate({ description: "Prompt tokens served from the prefix cache." })
  }),
  output_tokens: Schema.Int.annotate({ description: "New tokens, reasoning included." }),
  output_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int.annotate({ description: "New tokens spent on reasoning." }) }),
  total_tokens: Schema.Int.annotate({ description: "Sum." }),
  timings: Usage.fields.timings
}).annotate({ identifier: "ResponsesUsage" })
export type ResponsesUsage = typeof ResponsesUsage.Type

const nullable = <S extends Schema.Top>(schema: S) => Schema.NullOr(schema)

export const ResponseObject = Schema.Struct({
  id: Schema.String.annotate({ description: "resp_..." }),
  object: Schema.Literal("response"),
  created_at: Schema.Int.annotate({ description: "Unix time." }),
  status: Schema.Literals(["in_progress", "completed", "incomplete", "failed"]).annotate({
    description: "completed, or incomplete when max_output_tokens ran out; failed only in a stream."
  }),
  background: Schema.Boolean.annotate({ description: "false." }),
  error: nullable(Schema.Struct({ code: Schema.String, message: Schema.String })),
  incomplete_details: nullable(Schema.Struct({ reason: Schema.String.annotate({ description: "max_output_tokens" }) })),
  instructions: nullable(Schema.String),
  max_output_tokens: nullable(Schema.Int),
  model: Schema.String.annotate({ description: "The model field of the request, else the model id." }),
  output: Schema.Array(OutputItem),
  parallel_tool_calls: Schema.Boolean.annotate({ description: "From the request." }),
  previous_response_id: nullable(Schema.String),
  reasoning: Schema.Struct({ effort: nullable(Schema.String), summary: nullable(Schema.String) }),
  service_tier: Schema.String.annotate({ description: "default." }),
  store: Schema.Boolean.annotate({ description: "From the request." }),
  temperature: Schema.Finite,
  text: Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "From the request." }),
  tool_choice: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]).annotate({
    description: "From the request."
  }),
  tools: Schema.Array(EchoedTool).annotate({ description: "From the request." }),
  top_p: Schema.Finite,
  truncation: Schema.String,
  usage: nullable(ResponsesUsage).annotate({ description: "null while in progress." }),
  user: nullable(Schema.String),
  metadata: Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "From the request." })
}).annotate({ identifier: "Response" })
export type ResponseObject = typeof ResponseObject.Type

export const streamEventTypes = [
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.output_item.done",
  "response.content_part.added",
  "response.content_part.done",
  "response.output_text.delta",
  "response.output_text.done",
  "response.reasoning_text.delta",
  "response.reasoning_text.done",
  "response.reasoning_summary_part.added",
  "response.reasoning_summary_part.done",
  "response.reasoning_summary_text.delta",
  "response.reasoning_summary_text.done",
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.delta",
  "response.custom_tool_call_input.done",
  "response.completed",
  "response.incomplete",
  "error",
  "response.failed"
] as const

export const ResponseStreamEvent = Schema.Struct({
  type: Schema.Literals(streamEventTypes).annotate({ description: "Same as the SSE event name." }),
  sequence_number: Schema.Int.annotate({ description: "0, 1, 2, ..." }),
  response: Schema.optionalKey(ResponseObject),
  item: Schema.optionalKey(OutputItem),
  item_id: Schema.optionalKey(Schema.String.annotate({ description: "Item the event belongs to." })),
  output_index: Schema.optionalKey(Schema.Int.annotate({ description: "Item number." })),
  content_index: Schema.optionalKey(Schema.Int.annotate({ description: "Part number." })),
  summary_index: Schema.optionalKey(Schema.Int.annotate({ description: "Summary part number." })),
  delta: Schema.optionalKey(Schema.String.annotate({ description: "New text or arguments." })),
  logprobs: Schema.optionalKey(Schema.Array(Schema.Unknown).annotate({ description: "Of the new text, or of the whole text." })),
  text: Schema.optionalKey(Schema.String.annotate({ description: "Whole text (done events)." })),
  part: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "Content part." })),
  name: Schema.optionalKey(Schema.String.annotate({ description: "Tool name (function_call_arguments.done)." })),
  arguments: Schema.optionalKey(Schema.String.annotate({ description: "Whole arguments (done event)." })),
  input: Schema.optionalKey(Schema.String.annotate({ description: "Whole input (done event)." }))
}).annotate({
  identifier: "ResponseStreamEvent",
  description:
    "One `event:` + `data:` pair. While there is no output, response.in_progress is repeated every 10 s. A failure after the stream started is sent as response.failed (the response with status failed and its error)."
})
export type ResponseStreamEvent = typeof ResponseStreamEvent.Type

export const InputTokens = Schema.Struct({
  object: Schema.Literal("response.input_tokens"),
  input_tokens: Schema.Int
}).annotate({ identifier: "InputTokens" })

export const ResponseDeleted = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response"),
  deleted: Schema.Literal(true)
}).annotate({ identifier: "ResponseDeleted" })

export const InputItemList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)),
  first_id: nullable(Schema.String),
  last_id: nullable(Schema.String),
  has_more: Schema.Boolean
}).annotate({ identifier: "InputItemList" })
