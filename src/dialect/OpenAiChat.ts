import { Result } from "effect"
import { type ChatCompletion, ChatCompletionRequest, type ChatMessage } from "../../schema/openai/Chat.ts"
import { inertFields, type Usage as WireUsage } from "../../schema/openai/Common.ts"
import type { Message } from "../domain/Conversation.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { GenerationRequest } from "../domain/GenerationRequest.ts"
import type { Output, ToolCall } from "../domain/Output.ts"
import type { Finish } from "../domain/OutputEvent.ts"
import type { Usage } from "../domain/Usage.ts"
import { frame as errorFrame } from "./OpenAiError.ts"
import { maxTokens, sampling, stopStrings } from "./OpenAiSampling.ts"
import type { StreamEncoder } from "./StreamEncoder.ts"
import { wireTimings } from "./Timings.ts"
import { decoder, ignoredFields, type WireObject } from "./WireRequest.ts"

/** What the server knows of a request beside its body. */
export interface RequestContext {
  readonly tenant: string
  /** Where the client named one, by header or field. */
  readonly session: string | undefined
  /** 0 ≤ seed < 2^53; used when the request brings none. */
  readonly randomSeed: number
}

export interface DecodedRequest {
  readonly request: GenerationRequest
  readonly stream: boolean
  readonly includeUsage: boolean
  /** Fields of the body that change nothing, for the `x-mashbox-ignored` header. */
  readonly ignored: ReadonlyArray<string>
}

const decodeBody = decoder(ChatCompletionRequest)

const actedFields: ReadonlySet<string> = new Set(
  Object.keys(ChatCompletionRequest.fields).filter((name) => !Object.hasOwn(inertFields, name))
)

/** Variables of a template that come from the conversation or the model, never from the request. */
const reservedVariables: ReadonlySet<string> = new Set([
  "messages",
  "tools",
  "documents",
  "bos_token",
  "eos_token",
  "add_generation_prompt",
  "raise_exception",
  "strftime_now",
  "namespace",
  "range",
  "dict"
])

const unsupported = (field: string, what: string) =>
  new UnsupportedFeature({ message: `${field}: ${what} is not supported by this version`, field })

const refuseUnsupported = (body: ChatCompletionRequest): UnsupportedFeature | undefined => {
  if (body.tools !== undefined && body.tools.length > 0 && body.tool_choice !== "none") return unsupported("tools", "calling tools")
  if (body.tool_choice !== undefined && body.tool_choice !== "none" && body.tool_choice !== "auto") {
    return unsupported("tool_choice", "forcing a tool call")
  }
  if (body.response_format !== undefined && body.response_format.type !== "text") {
    return unsupported("response_format", "structured output")
  }
  if (body.logprobs === true) return unsupported("logprobs", "log probabilities")
  if (body.top_logprobs !== undefined && body.top_logprobs > 0) return unsupported("top_logprobs", "log probabilities")
  if (body.n !== undefined && body.n !== 1) return unsupported("n", "more than one choice")
  return undefined
}

const partsText = (
  content: ReadonlyArray<{ readonly type: string; readonly text?: string; readonly refusal?: string }>,
  field: string
): Result.Result<string, InvalidRequest | UnsupportedFeature> => {
  let text = ""
  for (const [index, part] of content.entries()) {
    const path = `${field}.${index}`
    if (part.type !== "text" && part.type !== "input_text" && part.type !== "output_text" && part.type !== "refusal") {
      return Result.fail(
        new UnsupportedFeature({ message: `${path}: only text parts are supported, because the model reads only text`, field: path })
      )
    }
    const own = part.type === "refusal" ? part.refusal : part.text
    if (own === undefined) {
      const name = part.type === "refusal" ? "refusal" : "text"
      return Result.fail(new InvalidRequest({ message: `${path}.${name}: Missing key`, field: `${path}.${name}` }))
    }
    text += own
  }
  return Result.succeed(text)
}

const message = (wire: ChatMessage, index: number): Result.Result<Message, InvalidRequest | UnsupportedFeature> => {
  const field = `messages.${index}.content`
  const parts = typeof wire.content === "string" || wire.content === null || wire.content === undefined
    ? Result.succeed(wire.content ?? null)
    : partsText(wire.content, field)
  if (Result.isFailure(parts)) return Result.fail(parts.failure)
  const content = parts.success === null ? null : parts.success.toWellFormed()
  const name = wire.name === null || wire.name === undefined ? {} : { name: wire.name.toWellFormed() }
  if (wire.role === "assistant") {
    return Result.succeed({
      role: "assistant",
      content,
      ...(wire.reasoning_content === null || wire.reasoning_content === undefined
        ? {}
        : { reasoning: wire.reasoning_content.toWellFormed() }),
      ...(wire.tool_calls === null || wire.tool_calls === undefined || wire.tool_calls.length === 0 ? {} : {
        toolCalls: wire.tool_calls.map((call) => ({
          id: call.id,
          name: call.function.name.toWellFormed(),
          arguments: call.function.arguments.toWellFormed()
        }))
      })
    })
  }
  if (content === null) return Result.fail(new InvalidRequest({ message: `${field}: Missing key`, field }))
  if (wire.role === "tool" || wire.role === "function") {
    return Result.succeed({ role: "tool", toolCallId: wire.tool_call_id ?? "", ...name, content })
  }
  return Result.succeed({ role: wire.role, content, ...name })
}

/** Booleans, numbers and plain words only: a string that spells a control token would otherwise reach the prompt as one. */
const isTemplateValue = (value: unknown) =>
  typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)) || value === null ||
  (typeof value === "string" && /^[\w .:-]{0,64}$/.test(value))

interface TemplateVariables {
  readonly variables: Readonly<Record<string, unknown>>
  readonly ignored: ReadonlyArray<string>
}

const templateVariables = (body: ChatCompletionRequest): Result.Result<TemplateVariables, InvalidRequest> => {
  const effort = body.reasoning_effort ?? body.reasoning?.effort ?? undefined
  const variables: Record<string, unknown> = {
    enable_thinking: body.enable_thinking ?? (effort !== undefined && effort !== "none")
  }
  if (effort !== undefined && effort !== "none") variables["reasoning_effort"] = effort
  const ignored: Array<string> = []
  for (const [name, value] of Object.entries(body.chat_template_kwargs ?? {})) {
    if (!/^[A-Za-z_]\w{0,63}$/.test(name) || name.startsWith("__")) {
      return Result.fail(
        new InvalidRequest({ message: "chat_template_kwargs: names must be identifiers", field: "chat_template_kwargs" })
      )
    }
    const field = `chat_template_kwargs.${name}`
    if (reservedVariables.has(name)) {
      ignored.push(field)
    } else if (!isTemplateValue(value)) {
      return Result.fail(new InvalidRequest({ message: `${field}: Expected a boolean, a number or a short plain word`, field }))
    } else {
      variables[name] = value
    }
  }
  return Result.succeed({ variables, ignored })
}

/** A request body → what is asked for, or the field to blame. */
export const decode = (
  wire: WireObject,
  context: RequestContext
): Result.Result<DecodedRequest, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    const body = yield* decodeBody(wire)
    const refused = refuseUnsupported(body)
    if (refused !== undefined) return yield* Result.fail(refused)
    const messages: Array<Message> = []
    for (const [index, item] of body.messages.entries()) messages.push(yield* message(item, index))
    const { ignored, variables } = yield* templateVariables(body)
    return {
      request: {
        model: body.model,
        prompt: { _tag: "Chat", conversation: { messages, tools: [], templateVariables: variables } },
        sampling: yield* sampling(body, context.randomSeed),
        maxTokens: maxTokens(body),
        stopStrings: stopStrings(body),
        tenant: context.tenant,
        session: context.session
      },
      stream: body.stream ?? false,
      includeUsage: body.stream_options?.include_usage ?? false,
      ignored: [...ignoredFields(wire, actedFields), ...ignored]
    }
  })

/** What every answer to one request repeats. */
export interface ResponseHead {
  /** "chatcmpl-…" */
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
}

const wireUsage = (usage: Usage): WireUsage => ({
  prompt_tokens: usage.promptTokens,
  completion_tokens: usage.completionTokens,
  total_tokens: usage.promptTokens + usage.completionTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedTokens }
})

const wireToolCall = (call: ToolCall) => ({
  id: call.id,
  type: "function" as const,
  function: { name: call.name, arguments: call.arguments }
})

/** The whole answer as one JSON text. */
export const completion = (head: ResponseHead, output: Output, finish: Finish): string => {
  const body: ChatCompletion = {
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: output.text === "" && output.toolCalls.length > 0 ? null : output.text,
        ...(output.reasoning === "" ? {} : { reasoning_content: output.reasoning }),
        ...(output.toolCalls.length === 0 ? {} : { tool_calls: output.toolCalls.map(wireToolCall) })
      },
      finish_reason: finish.reason,
      logprobs: null
    }],
    usage: wireUsage(finish.usage),
    timings: wireTimings(finish.usage)
  }
  return JSON.stringify(body)
}

/** Chunks of one streamed answer: the role, the deltas, the last one with timings, usage where it was asked for, `[DONE]`. */
export const chunks = (head: ResponseHead, includeUsage: boolean): StreamEncoder => {
  const fixed = `data: {"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${
    JSON.stringify(head.model)
  },"choices":[`
  const textPrefix = `${fixed}{"index":0,"delta":{"content":`
  const reasoningPrefix = `${fixed}{"index":0,"delta":{"reasoning_content":`
  const callPrefix = `${fixed}{"index":0,"delta":{"tool_calls":[`
  const callSuffix = `]},"finish_reason":null}]}\n\n`
  const suffix = `},"finish_reason":null}]}\n\n`
  return {
    start: () => `${fixed}{"index":0,"delta":{"role":"assistant","content":""${suffix}`,
    event: (event) => {
      if (event._tag === "Text") return textPrefix + JSON.stringify(event.text) + suffix
      if (event._tag === "Reasoning") return reasoningPrefix + JSON.stringify(event.text) + suffix
      if (event._tag === "ToolCall") {
        return callPrefix + JSON.stringify({ index: event.index, ...wireToolCall({ id: event.id, name: event.name, arguments: "" }) }) +
          callSuffix
      }
      if (event._tag === "ToolArguments") {
        return callPrefix + JSON.stringify({ index: event.index, function: { arguments: event.text } }) + callSuffix
      }
      const timings = JSON.stringify(wireTimings(event.usage))
      const last = `${fixed}{"index":0,"delta":{},"finish_reason":"${event.reason}"}],"timings":${timings}}\n\n`
      const usage = includeUsage ? `${fixed}],"usage":${JSON.stringify(wireUsage(event.usage))},"timings":${timings}}\n\n` : ""
      return `${last}${usage}data: [DONE]\n\n`
    },
    error: (error) => errorFrame(error, head.id),
    keepAlive: () => ": keep-alive\n\n"
  }
}
