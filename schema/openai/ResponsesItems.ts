import { Schema } from "effect"

const text = Schema.optionalKey(Schema.NullOr(Schema.String))

/** A part of a message or of a tool's output. Only text reaches the model. */
export const InputPart = Schema.Struct({
  type: Schema.String.annotate({
    description: "input_text, output_text, text, summary_text, reasoning_text or refusal; parts of any other kind are not text."
  }),
  text,
  refusal: text
}).annotate({ identifier: "ResponsesInputPart" })
export type InputPart = typeof InputPart.Type

const content = Schema.Union([Schema.String, Schema.Array(InputPart)]).annotate({ expected: "a string or a list of parts" })

const id = Schema.optionalKey(Schema.NullOr(Schema.String)).annotateKey({ description: "Ignored, except that item_reference finds it." })

/** `type` may be left out where there is a role. */
export const MessageItem = Schema.Struct({
  type: Schema.optionalKey(Schema.NullOr(Schema.Literal("message"))),
  id,
  role: Schema.Literals(["system", "developer", "user", "assistant"]).annotate({
    expected: "one of system, developer, user, assistant",
    description: "system and developer messages stay where they are."
  }),
  content: Schema.optionalKey(Schema.NullOr(content)).annotateKey({
    description:
      "Text, or a list of text parts. An image, audio or file part of the newest turn is refused with 400 (text-only model); in earlier turns a placeholder stands for it."
  })
})
export type MessageItem = typeof MessageItem.Type

const namespace = Schema.optionalKey(Schema.NullOr(Schema.String)).annotateKey({ description: "The namespace tool that the tool is in." })

export const FunctionCallItem = Schema.Struct({
  type: Schema.Literal("function_call"),
  id,
  call_id: Schema.String,
  name: Schema.String,
  namespace,
  arguments: Schema.String.annotate({ description: "JSON text." })
})

export const CustomToolCallItem = Schema.Struct({
  type: Schema.Literal("custom_tool_call"),
  id,
  call_id: Schema.String,
  name: Schema.String,
  namespace,
  input: Schema.String
})

export const ToolOutputItem = Schema.Struct({
  type: Schema.Literals(["function_call_output", "custom_tool_call_output", "local_shell_call_output"]),
  id,
  call_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  output: content
})

export const LocalShellCallItem = Schema.Struct({
  type: Schema.Literal("local_shell_call"),
  id,
  call_id: Schema.String,
  action: Schema.Record(Schema.String, Schema.Unknown)
})

export const ReasoningItem = Schema.Struct({
  type: Schema.Literal("reasoning"),
  id,
  summary: Schema.optionalKey(Schema.NullOr(Schema.Array(InputPart))),
  content: Schema.optionalKey(Schema.NullOr(Schema.Array(InputPart))),
  encrypted_content: Schema.optionalKey(Schema.NullOr(Schema.String)).annotateKey({
    description: "From an answer of this server: the exact reasoning, which then wins over content and summary."
  })
})

export const ItemReference = Schema.Struct({
  type: Schema.Literal("item_reference"),
  id: Schema.String.annotate({ description: "An item of a stored response. One that is not stored any more is left out." })
})

const itemTypes = [
  "message",
  "function_call",
  "custom_tool_call",
  "function_call_output",
  "custom_tool_call_output",
  "local_shell_call",
  "local_shell_call_output",
  "reasoning",
  "item_reference",
  "additional_tools"
] as const

const otherType = new RegExp(`^(?!(?:${itemTypes.join("|")})$)`, "u")

const OtherItem = Schema.Struct({
  type: Schema.String.check(Schema.isPattern(otherType)).annotate({
    description: "Items of any other kind, such as web_search_call, do not reach the model and are named in x-mashbox-ignored."
  })
})

const toolName = Schema.String.check(Schema.isPattern(/^[\w.:/-]{1,128}$/u)).annotate({
  expected: "a name of 1 to 128 letters, digits, _ . : / or -"
})
const description = Schema.optionalKey(Schema.NullOr(Schema.String))

export const FunctionTool = Schema.Struct({
  type: Schema.Literal("function"),
  name: toolName,
  description,
  parameters: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))),
  strict: Schema.optionalKey(Schema.NullOr(Schema.Boolean))
})

export const CustomTool = Schema.Struct({
  type: Schema.Literal("custom"),
  name: toolName,
  description,
  format: Schema.optionalKey(Schema.NullOr(Schema.Struct({
    type: Schema.String,
    syntax: Schema.optionalKey(Schema.String),
    definition: Schema.optionalKey(Schema.String)
  })))
})

/** A tool of a kind that the model is not shown. */
const OtherTool = Schema.Struct({
  type: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^(?!(?:function|custom|namespace)$)/u)))
})

export const NamespaceTool = Schema.Struct({
  type: Schema.Literal("namespace"),
  name: toolName,
  description,
  tools: Schema.Array(Schema.Union([FunctionTool, CustomTool, OtherTool]))
})

/** A tool of a request. */
export const ResponsesTool = Schema.Union([FunctionTool, CustomTool, NamespaceTool, OtherTool]).annotate({
  identifier: "ResponsesTool",
  description:
    "function, custom (the model gives its input as one string, which is held to its lark or regex grammar) or namespace tools. Every other kind (web_search, file_search, tool_search, code_interpreter, mcp, ...) is not shown to the model and named in x-mashbox-ignored. strict: true holds arguments to the schema; what cannot be held is refused by the keyword: 400."
})

/** A tool as a response repeats it. */
export const EchoedTool = Schema.Record(Schema.String, Schema.Unknown)

export const AdditionalTools = Schema.Struct({
  type: Schema.Literal("additional_tools"),
  id,
  tools: Schema.Array(ResponsesTool).annotate({ description: "More tools, as in the request's tools." })
})

/** One entry of `input`. */
export const InputItem = Schema.Union([
  MessageItem,
  FunctionCallItem,
  CustomToolCallItem,
  ToolOutputItem,
  LocalShellCallItem,
  ReasoningItem,
  ItemReference,
  AdditionalTools,
  OtherItem
]).annotate({ identifier: "ResponsesInputItem" })
