import type { ChatCompletion } from "../../schema/openai/Chat.ts"
import type { TokenLogprobs } from "../domain/Logprobs.ts"
import type { Output, ToolCall } from "../domain/Output.ts"
import type { Finish } from "../domain/OutputEvent.ts"
import { combineChoices, type Usage } from "../domain/Usage.ts"
import { frame as errorFrame } from "./OpenAiError.ts"
import { choiceExtras, logprobsJson, members, promptTokens, wireLogprobs } from "./OpenAiTokens.ts"
import { usageMember, wireUsage } from "./OpenAiUsage.ts"
import type { StreamEncoder } from "./StreamEncoder.ts"
import { wireTimings } from "./Timings.ts"

/** What every answer to one request repeats. */
export interface ResponseHead {
  /** "chatcmpl-…" */
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
}

/** `functions`: the older form, for one call. */
export type CallForm = "tools" | "functions"

const finishReason = (form: CallForm, { reason }: Finish) => form === "functions" && reason === "tool_calls" ? "function_call" : reason

const callMember = (form: CallForm, calls: ReadonlyArray<ToolCall>) => {
  const [first] = calls
  if (first === undefined) return {}
  return form === "functions"
    ? { function_call: { name: first.name, arguments: first.arguments } }
    : { tool_calls: calls.map(wireToolCall) }
}

interface Choice {
  readonly output: Output
  readonly finish: Finish
}

const wireToolCall = (call: ToolCall) => ({
  id: call.id,
  type: "function" as const,
  function: { name: call.name, arguments: call.arguments }
})

const contentLogprobs = (logprobs: ReadonlyArray<TokenLogprobs>) => ({ content: wireLogprobs(logprobs), refusal: null })

const contentLogprobsJson = (logprobs: ReadonlyArray<TokenLogprobs>) => `{"content":${logprobsJson(logprobs)},"refusal":null}`

const wireChoice = (form: CallForm) => ({ finish, output }: Choice, index: number): ChatCompletion["choices"][number] => ({
  index,
  message: {
    role: "assistant",
    content: output.text === "" && output.toolCalls.length > 0 ? null : output.text,
    ...(output.reasoning === "" ? {} : { reasoning_content: output.reasoning }),
    ...callMember(form, output.toolCalls)
  },
  finish_reason: finishReason(form, finish),
  logprobs: output.logprobs === undefined ? null : contentLogprobs(output.logprobs),
  ...choiceExtras(finish)
})

const totals = (finishes: ReadonlyArray<Finish>): Usage => combineChoices(finishes.map(({ usage }) => usage))

/** The whole answer as one JSON text; there is at least one choice. */
export const completion = (head: ResponseHead, choices: ReadonlyArray<Choice>, form: CallForm = "tools"): string => {
  const usage = totals(choices.map(({ finish }) => finish))
  const body: ChatCompletion = {
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    choices: choices.map(wireChoice(form)),
    ...promptTokens(choices[0]?.finish),
    usage: wireUsage(usage),
    timings: wireTimings(usage)
  }
  return JSON.stringify(body)
}

export interface ChunkOptions {
  /** How many choices the stream has. */
  readonly choices: number
  readonly includeUsage: boolean
  /** Default `tools`. */
  readonly form?: CallForm
  /** Prompt tokens, where every chunk tells its usage. */
  readonly usageOf: number | undefined
  readonly returnProgress: boolean
}

/**
 * Chunks of one streamed answer: the role of each choice, the deltas, a last one per choice with its timings, usage where it was asked for,
 * `[DONE]`.
 */
export const chunks = (
  head: ResponseHead,
  { choices, form = "tools", includeUsage, returnProgress, usageOf }: ChunkOptions
): StreamEncoder => {
  const fixed = `data: {"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${
    JSON.stringify(head.model)
  },"choices":[`
  const suffix = `},"finish_reason":null}]`
  const end = usageOf === undefined ? () => "}\n\n" : (generated = 0) => `${usageMember(usageOf, generated)}}\n\n`
  const callSuffix = `]${suffix}`
  const prefixes = Array.from({ length: choices }, (_, index) => {
    const delta = `${fixed}{"index":${index},"delta":{`
    return {
      delta,
      text: `${delta}"content":`,
      reasoning: `${delta}"reasoning_content":`,
      call: `${delta}"tool_calls":[`,
      functionCall: `${delta}"function_call":`
    }
  })
  const prefix = (choice: number) => {
    const own = prefixes[choice]
    if (own === undefined) throw new RangeError(`there is no choice ${choice}`)
    return own
  }
  return {
    start: () => prefixes.map(({ delta }) => `${delta}"role":"assistant","content":""${suffix}${end()}`).join(""),
    event: (event, choice = 0) => {
      const own = prefix(choice)
      switch (event._tag) {
        case "Text":
          return event.logprobs === undefined
            ? own.text + JSON.stringify(event.text) + suffix + end(event.generated)
            : `${own.text}${JSON.stringify(event.text)}},"logprobs":${contentLogprobsJson(event.logprobs)},"finish_reason":null}]${
              end(event.generated)
            }`
        case "Reasoning":
          return own.reasoning + JSON.stringify(event.text) + suffix + end(event.generated)
        case "ToolCall":
          if (form === "functions") {
            return own.functionCall + JSON.stringify({ name: event.name, arguments: "" }) + suffix + end(event.generated)
          }
          return own.call + JSON.stringify({ index: event.index, ...wireToolCall({ id: event.id, name: event.name, arguments: "" }) }) +
            callSuffix + end(event.generated)
        case "ToolArguments":
          if (form === "functions") {
            return `${own.functionCall}{"arguments":${JSON.stringify(event.text)}}${suffix}${end(event.generated)}`
          }
          return `${own.call}{"index":${event.index},"function":{"arguments":${JSON.stringify(event.text)}}}${callSuffix}${
            end(event.generated)
          }`
        case "Finish":
          return `${own.delta}},"finish_reason":"${finishReason(form, event)}"${members(choiceExtras(event))}}]${
            members(promptTokens(event))
          }${usageMember(usageOf, event.usage.completionTokens)},"timings":${JSON.stringify(wireTimings(event.usage))}}\n\n`
      }
    },
    end: (finishes) => {
      if (!includeUsage) return "data: [DONE]\n\n"
      const usage = totals(finishes)
      return `${fixed}],"usage":${JSON.stringify(wireUsage(usage))},"timings":${JSON.stringify(wireTimings(usage))}}\n\ndata: [DONE]\n\n`
    },
    ...(returnProgress
      ? {
        progress: ({ elapsedMs, processed, total }, choice = 0) =>
          `${prefix(choice).delta}},"finish_reason":null}]${usageMember(usageOf, 0)},"prompt_progress":${
            JSON.stringify({ total, processed, time_ms: Math.round(elapsedMs) })
          }}\n\n`
      }
      : {}),
    error: (error) => errorFrame(error, head.id),
    keepAlive: () => ": keep-alive\n\n"
  }
}
