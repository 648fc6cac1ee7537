import { Result, Schema } from "effect"
import { inertResponsesFields, InputTokensRequest, ResponsesRequest } from "../../schema/openai/Responses.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { GenerationRequest } from "../domain/GenerationRequest.ts"
import { effortBudget } from "../domain/ReasoningBudget.ts"
import { greedyDefaults } from "../domain/Sampling.ts"
import type { ToolChoice } from "../domain/Tool.ts"
import type { RequestContext } from "./OpenAiChat.ts"
import { addTools, messagesOf, type PlacedItem, resolveReferences } from "./OpenAiResponsesInput.ts"
import type { Echo } from "./OpenAiResponsesOutput.ts"
import { type Fields, looseTools, ToolSet } from "./OpenAiResponsesTools.ts"
import { maxTokens, sampling, stopStrings } from "./OpenAiSampling.ts"
import { toolChoice } from "./OpenAiToolChoice.ts"
import { responseFormat } from "./OutputFormats.ts"
import { decoder, ignoredFields, type WireObject } from "./WireRequest.ts"

/** Looks into what the request's tenant has stored. */
export interface StoredConversations {
  /** Input and output of a response, in their order. */
  readonly items: (responseId: string) => ReadonlyArray<Fields> | undefined
  /** An item of any stored response. */
  readonly item: (itemId: string) => Fields | undefined
}

export interface ResponsesContext extends RequestContext {
  readonly stored: StoredConversations
}

export interface DecodedInput {
  readonly model: string | undefined
  readonly prompt: Extract<GenerationRequest["prompt"], { _tag: "Chat" }>
  /** The whole conversation: stored items, then those of the request, references resolved. */
  readonly items: ReadonlyArray<PlacedItem>
  readonly tools: ToolSet
  readonly choice: ToolChoice | undefined
  readonly ignored: ReadonlyArray<string>
}

export interface DecodedResponses extends DecodedInput {
  readonly request: GenerationRequest
  readonly stream: boolean
  readonly echo: Echo
  /** Whether reasoning comes as a summary, and whether it comes sealed as well. */
  readonly reasoning: { readonly summary: boolean; readonly sealed: boolean }
}

/** `previous_response_id` names nothing that is stored. */
export interface PreviousNotFound {
  readonly _tag: "PreviousNotFound"
  readonly id: string
}

type Refusal = InvalidRequest | UnsupportedFeature

/** Items and tools are decoded one by one, each as its own kind, so that an error names the item's field. */
const looseInput = Schema.Union([Schema.String, Schema.Array(Schema.Record(Schema.String, Schema.Unknown))]).annotate({
  expected: "a string or a list of items"
})

const loose = {
  input: looseInput,
  tools: Schema.optionalKey(looseTools)
}

const LooseRequest = Schema.Struct({ ...ResponsesRequest.fields, ...loose })
const LooseInputRequest = Schema.Struct({ ...InputTokensRequest.fields, ...loose })
const decodeBody = decoder(LooseRequest)
const decodeInputBody = decoder(LooseInputRequest)
type InputBody = typeof LooseInputRequest.Type
type Body = typeof LooseRequest.Type

const actedFields: ReadonlySet<string> = new Set([
  ...Object.keys(ResponsesRequest.fields).filter((name) => !Object.hasOwn(inertResponsesFields, name)),
  "prompt_cache_key"
])

const unsupported = (field: string, what: string) =>
  new UnsupportedFeature({ message: `${field}: ${what} is not supported by this version`, field })

const refuseUnsupported = (body: Body): UnsupportedFeature | undefined => {
  if (body.background === true) return unsupported("background", "answering in the background")
  return body.n !== undefined && body.n !== 1 ? unsupported("n", "more than one choice") : undefined
}

const refuseInput = (body: InputBody): UnsupportedFeature | undefined => {
  if (body.conversation !== undefined) return unsupported("conversation", "a stored conversation (previous_response_id is)")
  if (body.prompt !== undefined) return unsupported("prompt", "a stored prompt template")
  return undefined
}

const placed = (items: ReadonlyArray<Fields>): ReadonlyArray<PlacedItem> => items.map((item, index) => ({ item, path: `input.${index}` }))

const userMessage = (text: string): Fields => ({ type: "message", role: "user", content: [{ type: "input_text", text }] })

const templateVariables = (effort: string | undefined) => {
  const on = effort !== undefined && effort !== "none" && effort !== "minimal"
  return { enable_thinking: on, ...(on && /^\w{1,16}$/.test(effort) ? { reasoning_effort: effort } : {}) }
}

/** Where thinking is off, what a model may think that does so all the same. */
const unwantedReasoning = (effort: string | null | undefined): number | undefined =>
  effort === "none" ? 0 : effort === "minimal" ? effortBudget(effort) : undefined

/** Names inside a field that say nothing to this server. */
const unknownNames = (wire: WireObject, field: "reasoning" | "text"): ReadonlyArray<string> => {
  const value = wire.fields[field]
  const known = knownNames[field]
  return typeof value === "object" && value !== null
    ? ignoredFields({ fields: { ...value } }, known).map((name) => `${field}.${name}`)
    : []
}

const knownNames = {
  reasoning: new Set(["effort", "summary", "generate_summary"]),
  text: new Set(["format", "verbosity"])
}

const ignoredParts = (body: InputBody, wire: WireObject): ReadonlyArray<string> => [
  ...unknownNames(wire, "reasoning"),
  ...unknownNames(wire, "text"),
  ...(body.text?.verbosity === undefined || body.text.verbosity === null ? [] : ["text.verbosity"]),
  ...(body.truncation === undefined || body.truncation === "disabled" ? [] : ["truncation"])
]

const conversation = (
  body: InputBody,
  stored: StoredConversations
): Result.Result<Omit<DecodedInput, "ignored" | "model"> & { readonly skipped: ReadonlyArray<string> }, Refusal | PreviousNotFound> =>
  Result.gen(function*() {
    const refused = refuseInput(body)
    if (refused !== undefined) return yield* Result.fail(refused)
    const previousId = body.previous_response_id
    const previous = previousId === undefined ? [] : stored.items(previousId)
    if (previous === undefined) return yield* Result.fail<PreviousNotFound>({ _tag: "PreviousNotFound", id: previousId ?? "" })
    const own = placed(typeof body.input === "string" ? [userMessage(body.input)] : body.input)
    const items = [
      ...previous.map((item) => ({ item, path: "previous_response_id" })),
      ...(yield* resolveReferences(own, stored.item))
    ]
    const tools = new ToolSet()
    yield* tools.add(body.tools ?? [], "tools")
    yield* addTools(items, tools)
    const choice = yield* toolChoice(body.tool_choice, {
      count: tools.tools.length,
      find: (name, namespace) => tools.has(name, namespace) ? tools.modelName(name, namespace) : undefined
    })
    const { ignored, messages } = yield* messagesOf(items, tools)
    const instructions = body.instructions === undefined || body.instructions === ""
      ? []
      : [{ role: "system" as const, content: body.instructions.toWellFormed() }]
    if (messages.length + instructions.length === 0) {
      return yield* Result.fail(new InvalidRequest({ message: "input: Expected at least one item", field: "input" }))
    }
    return {
      prompt: {
        _tag: "Chat" as const,
        conversation: {
          messages: [...instructions, ...messages],
          tools: choice === "none" ? [] : tools.tools,
          templateVariables: templateVariables(body.reasoning?.effort ?? undefined)
        }
      },
      items,
      tools,
      choice: choice === "none" ? undefined : choice,
      skipped: [...tools.ignored, ...ignored]
    }
  })

const echoOf = (body: Body, wire: WireObject, { samplingDefaults = greedyDefaults }: ResponsesContext): Echo => ({
  model: body.model,
  instructions: body.instructions ?? null,
  max_output_tokens: outputLimit(body) ?? null,
  parallel_tool_calls: body.parallel_tool_calls ?? true,
  previous_response_id: body.previous_response_id ?? null,
  reasoning: { effort: body.reasoning?.effort ?? null, summary: body.reasoning?.summary ?? body.reasoning?.generate_summary ?? null },
  store: body.store ?? true,
  temperature: body.temperature ?? samplingDefaults.temperature,
  text: {
    format: body.text?.format ?? { type: "text" },
    ...(typeof body.text?.verbosity === "string" ? { verbosity: body.text.verbosity } : {})
  },
  tool_choice: body.tool_choice ?? "auto",
  tools: body.tools ?? [],
  top_p: body.top_p ?? samplingDefaults.topP,
  truncation: "disabled",
  user: typeof wire.fields["user"] === "string" ? wire.fields["user"] : null,
  metadata: body.metadata ?? {}
})

const outputLimit = (body: Body): number | undefined => body.max_output_tokens ?? maxTokens(body)

const mostIgnored = 64

const actedIncludes: ReadonlySet<string> = new Set(["reasoning.encrypted_content", "message.output_text.logprobs"])

/** A request body → what is asked for, or what to blame. */
export const decode = (
  wire: WireObject,
  context: ResponsesContext
): Result.Result<DecodedResponses, Refusal | PreviousNotFound> =>
  Result.gen(function*() {
    const body = yield* decodeBody(wire)
    const refused = refuseUnsupported(body)
    if (refused !== undefined) return yield* Result.fail(refused)
    const { skipped, ...input } = yield* conversation(body, context.stored)
    const format = yield* responseFormat(body.text?.format, "text.format", true)
    const echo = echoOf(body, wire, context)
    const budget = unwantedReasoning(body.reasoning?.effort)
    const include = body.include ?? []
    const logprobs = include.includes("message.output_text.logprobs") || (body.top_logprobs ?? 0) > 0
    return {
      ...input,
      model: body.model,
      request: {
        model: body.model,
        prompt: input.prompt,
        sampling: yield* sampling(body, context),
        ...(body.parallel_tool_calls === false ? { parallelToolCalls: false } : {}),
        ...(input.choice === undefined ? {} : { toolChoice: input.choice }),
        ...(format === undefined ? {} : { outputFormat: format }),
        maxTokens: outputLimit(body),
        ...(budget === undefined ? {} : { reasoningBudget: budget }),
        stopStrings: stopStrings(body),
        ...(logprobs ? { tokenOptions: { topLogprobs: body.top_logprobs ?? 0 } } : {}),
        tenant: context.tenant,
        session: context.session
      },
      stream: body.stream ?? false,
      echo,
      reasoning: {
        summary: echo.reasoning.summary !== null && echo.reasoning.summary !== "none",
        sealed: include.includes("reasoning.encrypted_content")
      },
      ignored: [
        ...ignoredFields(wire, actedFields),
        ...ignoredParts(body, wire),
        ...include.flatMap((name, index) => actedIncludes.has(name) ? [] : [`include.${index}`]),
        ...skipped
      ].slice(0, mostIgnored)
    }
  })

/** The body of a request that only asks how long its prompt is. */
export const decodeInput = (
  wire: WireObject,
  stored: StoredConversations
): Result.Result<DecodedInput, Refusal | PreviousNotFound> =>
  Result.gen(function*() {
    const body = yield* decodeInputBody(wire)
    const { skipped, ...input } = yield* conversation(body, stored)
    return {
      ...input,
      model: body.model,
      ignored: [...ignoredFields(wire, actedFields), ...ignoredParts(body, wire), ...skipped].slice(0, mostIgnored)
    }
  })
