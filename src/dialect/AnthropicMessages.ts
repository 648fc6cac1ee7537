import { Result } from "effect"
import {
  CountTokensRequest,
  type CountTokensRequest as PromptFields,
  inertFields,
  MessagesRequest,
  promptFields,
  type RequestTool
} from "../../schema/anthropic/MessagesRequest.ts"
import type { Conversation, Message } from "../domain/Conversation.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { GenerationRequest } from "../domain/GenerationRequest.ts"
import { tokenBudget } from "../domain/ReasoningBudget.ts"
import { isNamed, type ServedModelValue } from "../domain/ServedModel.ts"
import type { Tool, ToolChoice } from "../domain/Tool.ts"
import { conversationMessages, systemMessages } from "./AnthropicMessagesContent.ts"
import { maxTokens, sampling, type SamplingContext, stopStrings } from "./OpenAiSampling.ts"
import { responseFormat } from "./OutputFormats.ts"
import { decoder, ignoredFields, isRecord, type WireObject } from "./WireRequest.ts"

type Failure = InvalidRequest | UnsupportedFeature

/** What the server knows of a request beside its body. */
export interface RequestContext extends SamplingContext {
  readonly tenant: string
  /** Where the client named one, by header or field. */
  readonly session: string | undefined
  /** The model that is served. */
  readonly served: ServedModelValue
}

export interface DecodedRequest {
  readonly request: GenerationRequest
  /** As the client named it, else the one that is served. */
  readonly model: string
  readonly stream: boolean
  /** Thinking goes out without its text. */
  readonly omitThinking: boolean
  /** The stream tells how far the prompt is prefilled. */
  readonly returnProgress: boolean
  /** Fields of the body that change nothing, for the `x-mashbox-ignored` header. */
  readonly ignored: ReadonlyArray<string>
}

const decodeMessages = decoder(MessagesRequest)
const decodeCount = decoder(CountTokensRequest)

const actedFields: ReadonlySet<string> = new Set(Object.keys(MessagesRequest.fields).filter((name) => !Object.hasOwn(inertFields, name)))
const countedFields: ReadonlySet<string> = new Set(Object.keys(promptFields))

const unsupported = (field: string, what: string) =>
  new UnsupportedFeature({ message: `${field}: ${what} is not supported by this version`, field })

/** The SDK's tool runner asks for threads first and sends the whole conversation when it is told that there are none. */
const refuseThread = (wire: WireObject) =>
  wire.fields["thread"] === undefined
    ? Result.succeed(undefined)
    : Result.fail(new UnsupportedFeature({ message: "thread: message threads are not supported", field: "thread" }))

/** What would need an output that is held to a grammar. */
const refuseUnenforced = (body: MessagesRequest): UnsupportedFeature | undefined => {
  if (body.n !== undefined && body.n !== 1) return unsupported("n", "more than one answer")
  return undefined
}

const isServerTool = ({ input_schema, type }: RequestTool) =>
  type !== undefined && type !== null && type !== "custom" && input_schema === undefined

const clientTool = (tool: RequestTool, path: string): Result.Result<Tool, InvalidRequest> => {
  const { description, input_schema: parameters, name } = tool
  if (name === undefined || name === "") {
    return Result.fail(new InvalidRequest({ message: `${path}.name: Missing key`, field: `${path}.name` }))
  }
  if (parameters !== undefined && parameters !== null && !isRecord(parameters)) {
    return Result.fail(new InvalidRequest({ message: `${path}.input_schema: Expected an object`, field: `${path}.input_schema` }))
  }
  return Result.succeed({
    name: name.toWellFormed(),
    ...(description === undefined || description === null ? {} : { description: description.toWellFormed() }),
    ...(parameters === undefined || parameters === null ? {} : { parameters }),
    ...(tool.strict === true ? { strict: true, field: `${path}.input_schema` } : {})
  })
}

/** `any` and `tool`; the other two are promises that need no enforcement. */
const toolChoice = (
  { tool_choice: choice }: PromptFields,
  tools: ReadonlyArray<Tool>
): Result.Result<ToolChoice | undefined, InvalidRequest> => {
  const field = "tool_choice"
  if (choice?.type !== "any" && choice?.type !== "tool") return Result.succeed(undefined)
  if (choice.type === "any") {
    return tools.length > 0
      ? Result.succeed({ required: true, field })
      : Result.fail(new InvalidRequest({ message: `${field}: there are no tools to call`, field }))
  }
  const name = tools.find((tool) => tool.name === choice.name)?.name
  return name === undefined
    ? Result.fail(new InvalidRequest({ message: `${field}.name: there is no tool of this name in tools`, field: `${field}.name` }))
    : Result.succeed({ required: true, names: [name], once: true, field })
}

/** An answer that the client began and the model goes on with. */
const isBegunAnswer = (last: Message | undefined) =>
  last?.role === "assistant" && last.toolCalls === undefined && (last.content ?? "").trim() !== ""

interface DecodedPrompt {
  readonly conversation: Conversation
  readonly ignored: ReadonlyArray<string>
}

const conversation = (body: PromptFields): Result.Result<DecodedPrompt, Failure> =>
  Result.gen(function*() {
    const ignored: Array<string> = []
    const known = new Map<string, Tool>()
    const tools: Array<Tool> = []
    for (const [index, tool] of (body.tools ?? []).entries()) {
      const path = `tools.${index}`
      if (isServerTool(tool)) {
        ignored.push(path)
        continue
      }
      const own = yield* clientTool(tool, path)
      known.set(own.name, own)
      if (tool.defer_loading !== true) tools.push(own)
    }
    const context = { tools: known, ignored }
    const messages: ReadonlyArray<Message> = [
      ...yield* systemMessages(body.system, context),
      ...yield* conversationMessages(body.messages, context)
    ]
    const effort = body.messages.findLast((message) => typeof message.output_config?.effort === "string")?.output_config?.effort ??
      body.output_config?.effort
    return {
      conversation: {
        messages,
        tools: body.tool_choice?.type === "none" ? [] : tools,
        ...(isBegunAnswer(messages.at(-1)) ? { ending: "open_message" } : {}),
        templateVariables: {
          enable_thinking: body.thinking !== undefined && body.thinking.type !== "disabled",
          ...(effort === undefined || effort === null ? {} : { reasoning_effort: effort })
        }
      },
      ignored
    }
  })

const ignoredModel = (body: PromptFields, served: ServedModelValue) =>
  body.model === undefined || isNamed(served, body.model) ? [] : ["model"]

/** The body of `POST /v1/messages` → what is asked for, or the field to blame. */
export const decode = (wire: WireObject, context: RequestContext): Result.Result<DecodedRequest, Failure> =>
  Result.gen(function*() {
    yield* refuseThread(wire)
    const body = yield* decodeMessages(wire)
    const refused = refuseUnenforced(body)
    if (refused !== undefined) return yield* Result.fail(refused)
    const prompt = yield* conversation(body)
    const choice = yield* toolChoice(body, prompt.conversation.tools)
    const format = (yield* responseFormat(body.output_config?.format, "output_config.format", true)) ??
      (yield* responseFormat(body.output_format, "output_format", true))
    const budget = body.thinking?.type === "disabled" ? 0 : tokenBudget(body.thinking?.budget_tokens)
    return {
      request: {
        model: undefined,
        prompt: { _tag: "Chat", conversation: prompt.conversation },
        sampling: yield* sampling(body, context),
        ...(choice === undefined ? {} : { toolChoice: choice }),
        ...(format === undefined ? {} : { outputFormat: format }),
        maxTokens: maxTokens(body),
        ...(budget === undefined ? {} : { reasoningBudget: budget }),
        stopStrings: stopStrings(body),
        ...(body.tool_choice?.disable_parallel_tool_use === true ? { parallelToolCalls: false } : {}),
        tenant: context.tenant,
        session: context.session
      },
      model: body.model?.toWellFormed() ?? context.served.id,
      stream: body.stream ?? false,
      omitThinking: body.thinking?.display === "omitted",
      returnProgress: body.return_progress ?? false,
      ignored: [...ignoredModel(body, context.served), ...ignoredFields(wire, actedFields), ...prompt.ignored]
    }
  })

/** The body of `POST /v1/messages/count_tokens` → the conversation to count. */
export const decodeCounted = (wire: WireObject, served: ServedModelValue): Result.Result<DecodedPrompt, Failure> =>
  Result.gen(function*() {
    yield* refuseThread(wire)
    const body = yield* decodeCount(wire)
    const prompt = yield* conversation(body)
    return {
      conversation: prompt.conversation,
      ignored: [...ignoredModel(body, served), ...ignoredFields(wire, countedFields), ...prompt.ignored]
    }
  })

/**
 * The session that a client names in the body: `prompt_cache_key`, or, where it is not `known` from a header, the `session_id` in Claude Code's
 * `metadata.user_id`.
 */
export const sessionName = ({ fields }: WireObject, known: boolean): string | undefined => {
  const key = fields["prompt_cache_key"]
  if (typeof key === "string" && key !== "") return key
  const metadata = fields["metadata"]
  if (known || !isRecord(metadata) || typeof metadata["user_id"] !== "string") return undefined
  try {
    const user: unknown = JSON.parse(metadata["user_id"])
    return isRecord(user) && typeof user["session_id"] === "string" && user["session_id"] !== "" ? user["session_id"] : undefined
  } catch {
    return undefined
  }
}
