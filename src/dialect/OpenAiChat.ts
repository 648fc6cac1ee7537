import { Result } from "effect"
import { ChatCompletionRequest } from "../../schema/openai/Chat.ts"
import { inertFields } from "../../schema/openai/Common.ts"
import type { Conversation, Message } from "../domain/Conversation.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { GenerationRequest } from "../domain/GenerationRequest.ts"
import { tokenBudget } from "../domain/ReasoningBudget.ts"
import { conversationMessages } from "./OpenAiChatMessages.ts"
import { decodeTools } from "./OpenAiChatTools.ts"
import { maxTokens, sampling, type SamplingContext, stopStrings } from "./OpenAiSampling.ts"
import { continuousUsage, ignoredStreamOptions, refusedField, tokenOptions } from "./OpenAiTokens.ts"
import { outputFormat } from "./OutputFormats.ts"
import { decoder, ignoredFields, ignoredWithin, type WireObject } from "./WireRequest.ts"

/** What the server knows of a request beside its body. */
export interface RequestContext extends SamplingContext {
  readonly tenant: string
  /** Where the client named one, by header or field. */
  readonly session: string | undefined
}

export interface DecodedRequest {
  readonly request: GenerationRequest & { readonly prompt: { readonly _tag: "Chat" } }
  readonly stream: boolean
  /** Whether a call is told in the form of `functions`. */
  readonly asFunctions: boolean
  readonly includeUsage: boolean
  /** Whether every chunk tells its usage. */
  readonly continuousUsage: boolean
  /** Whether the stream tells how far the prompt is prefilled. */
  readonly returnProgress: boolean
  /** Fields of the body that change nothing, for the `x-mashbox-ignored` header. */
  readonly ignored: ReadonlyArray<string>
}

const decodeBody = decoder(ChatCompletionRequest)

const actedFields: ReadonlySet<string> = new Set(
  Object.keys(ChatCompletionRequest.fields).filter((name) => name === "prompt_cache_key" || !Object.hasOwn(inertFields, name))
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
  if (body.echo === true) return unsupported("echo", "beginning the answer with the prompt")
  if (body.add_special_tokens === true) return unsupported("add_special_tokens", "adding special tokens to a chat template's own")
  if (body.modalities?.some((modality) => modality !== "text") === true) return unsupported("modalities", "output other than text")
  return undefined
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

/** Whether a request says that it wants no reasoning, and does not only say nothing of it. */
const refusesReasoning = (
  { chat_template_kwargs: variables, enable_thinking: enabled, reasoning, reasoning_effort: effort }: ChatCompletionRequest
) => (enabled ?? variables?.["enable_thinking"]) === false || (effort ?? reasoning?.effort) === "none"

const reasoningOptions = new Set(["effort", "max_tokens"])

/** What the prompt ends with; undefined for the beginning of an answer. */
const promptEnding = (
  body: ChatCompletionRequest,
  messages: ReadonlyArray<Message>
): Result.Result<Conversation["ending"] | undefined, InvalidRequest> => {
  if (body.continue_final_message !== true) return Result.succeed(body.add_generation_prompt === false ? "message" : undefined)
  const field = "continue_final_message"
  if (body.add_generation_prompt === true) {
    return Result.fail(new InvalidRequest({ message: `${field}: cannot be true together with add_generation_prompt`, field }))
  }
  const last = messages.at(-1)
  return last?.role === "assistant" && last.content !== null && last.content.trim() !== "" && last.toolCalls === undefined
    ? Result.succeed("open_message")
    : Result.fail(
      new InvalidRequest({ message: `${field}: the last message must be the assistant's, with text and without tool calls`, field })
    )
}

/** A request body → what is asked for, or the field to blame. */
export const decode = (
  wire: WireObject,
  context: RequestContext
): Result.Result<DecodedRequest, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    const refusal = refusedField(wire)
    if (refusal !== undefined) return yield* Result.fail(refusal)
    const body = yield* decodeBody(wire)
    const refused = refuseUnsupported(body)
    if (refused !== undefined) return yield* Result.fail(refused)
    const messages = yield* conversationMessages(body.messages)
    const ending = yield* promptEnding(body, messages)
    if (body.top_logprobs !== undefined && body.top_logprobs > 0 && body.logprobs !== true) {
      return yield* Result.fail(new InvalidRequest({ message: "top_logprobs: needs logprobs: true", field: "top_logprobs" }))
    }
    const options = tokenOptions(body, body.logprobs === true ? body.top_logprobs ?? 0 : undefined)
    const { ignored, variables } = yield* templateVariables(body)
    const { asFunctions, choice, ignored: ignoredTools, tools } = yield* decodeTools(body)
    const format = yield* outputFormat(body)
    const budget = refusesReasoning(body)
      ? 0
      : tokenBudget(body.reasoning?.max_tokens ?? body.thinking_token_budget ?? body.thinking_budget_tokens)
    const conversation = { messages, tools, templateVariables: variables, ...(ending === undefined ? {} : { ending }) }
    return {
      request: {
        model: body.model,
        prompt: { _tag: "Chat", conversation },
        sampling: yield* sampling(body, context),
        ...(body.n === undefined ? {} : { choices: body.n }),
        ...(asFunctions
          ? { parallelToolCalls: false }
          : body.parallel_tool_calls === undefined
          ? {}
          : { parallelToolCalls: body.parallel_tool_calls }),
        ...(choice === undefined ? {} : { toolChoice: choice }),
        ...(format === undefined ? {} : { outputFormat: format }),
        maxTokens: maxTokens(body),
        ...(budget === undefined ? {} : { reasoningBudget: budget }),
        stopStrings: stopStrings(body),
        ...(options === undefined ? {} : { tokenOptions: options }),
        tenant: context.tenant,
        session: context.session
      },
      stream: body.stream ?? false,
      asFunctions,
      includeUsage: body.stream_options?.include_usage ?? false,
      continuousUsage: continuousUsage(body),
      returnProgress: body.return_progress ?? false,
      ignored: [
        ...ignoredFields(wire, actedFields),
        ...ignoredStreamOptions(wire, body),
        ...ignoredWithin(wire, "reasoning", reasoningOptions),
        ...ignoredTools,
        ...ignored
      ]
    }
  })
