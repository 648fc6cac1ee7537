import type { OutputItem, ResponseObject, ResponsesUsage } from "../../schema/openai/Responses.ts"
import type { Output } from "../domain/Output.ts"
import type { Finish, OutputEvent } from "../domain/OutputEvent.ts"
import type { Usage } from "../domain/Usage.ts"
import { cacheTimings } from "./OpenAiUsage.ts"

/** What a response repeats of its request. */
export interface Echo extends
  Pick<
    ResponseObject,
    | "instructions"
    | "max_output_tokens"
    | "metadata"
    | "parallel_tool_calls"
    | "previous_response_id"
    | "reasoning"
    | "store"
    | "temperature"
    | "text"
    | "tool_choice"
    | "tools"
    | "top_p"
    | "truncation"
    | "user"
  >
{
  readonly model: string | undefined
}

/** What every state of one response has in common. */
export interface ResponseHead {
  /** "resp_…" */
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** The served model's id. */
  readonly model: string
  readonly echo: Echo
}

export interface ResponseState {
  readonly status: ResponseObject["status"]
  readonly output: ReadonlyArray<OutputItem>
  readonly usage?: ResponsesUsage
  readonly incomplete?: string
  readonly error?: { readonly code: string; readonly message: string }
}

/** The response object in one of its states. */
export const responseObject = ({ created, echo, id, model }: ResponseHead, state: ResponseState): ResponseObject => ({
  id,
  object: "response",
  created_at: created,
  status: state.status,
  background: false,
  error: state.error ?? null,
  incomplete_details: state.incomplete === undefined ? null : { reason: state.incomplete },
  instructions: echo.instructions,
  max_output_tokens: echo.max_output_tokens,
  model: echo.model ?? model,
  output: state.output,
  parallel_tool_calls: echo.parallel_tool_calls,
  previous_response_id: echo.previous_response_id,
  reasoning: echo.reasoning,
  service_tier: "default",
  store: echo.store,
  temperature: echo.temperature,
  text: echo.text,
  tool_choice: echo.tool_choice,
  tools: echo.tools,
  top_p: echo.top_p,
  truncation: echo.truncation,
  usage: state.usage ?? null,
  user: echo.user,
  metadata: echo.metadata
})

export const wireUsage = (usage: Usage): ResponsesUsage => ({
  input_tokens: usage.promptTokens,
  input_tokens_details: { cached_tokens: usage.cachedTokens },
  output_tokens: usage.completionTokens,
  output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  total_tokens: usage.promptTokens + usage.completionTokens,
  timings: cacheTimings(usage)
})

/** The id of an item, or of another part of one response: `prefix_` and the response's own digits and a number. */
export const itemId = (responseId: string, prefix: string, index: number): string =>
  `${prefix}_${responseId.slice(responseId.indexOf("_") + 1)}${index.toString(16).padStart(2, "0")}`

/** A finished answer as the events that a stream would have had. */
export const eventsOf = (output: Output, finish: Finish): ReadonlyArray<OutputEvent> => [
  ...(output.reasoning === "" ? [] : [{ _tag: "Reasoning", text: output.reasoning } as const]),
  ...(output.text === "" ? [] : [{ _tag: "Text", text: output.text } as const]),
  ...output.toolCalls.flatMap((call, index) => [
    { _tag: "ToolCall", index, id: call.id, name: call.name } as const,
    { _tag: "ToolArguments", index, text: call.arguments } as const
  ]),
  finish
]
