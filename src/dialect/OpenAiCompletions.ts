import { Result } from "effect"
import { inertFields } from "../../schema/openai/Common.ts"
import { type Completion, CompletionRequest } from "../../schema/openai/Completions.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { GenerationRequest, Prompt } from "../domain/GenerationRequest.ts"
import type { Output } from "../domain/Output.ts"
import type { Finish } from "../domain/OutputEvent.ts"
import { combineChoices, combinePrompts, type Usage } from "../domain/Usage.ts"
import type { RequestContext } from "./OpenAiChat.ts"
import type { ResponseHead } from "./OpenAiChatAnswer.ts"
import { frame as errorFrame } from "./OpenAiError.ts"
import { maxTokens, sampling, stopStrings } from "./OpenAiSampling.ts"
import {
  choiceExtras,
  CompletionsLogprobs,
  continuousUsage,
  ignoredStreamOptions,
  members,
  promptTokens,
  refusedField,
  tokenOptions
} from "./OpenAiTokens.ts"
import { usageMember, wireUsage } from "./OpenAiUsage.ts"
import { outputFormat } from "./OutputFormats.ts"
import type { StreamEncoder } from "./StreamEncoder.ts"
import { wireTimings } from "./Timings.ts"
import { decoder, ignoredFields, type WireObject } from "./WireRequest.ts"

/** Prompts times continuations: as many as may wait for one tenant. */
const mostChoices = 32

export interface DecodedCompletion {
  /** One for each prompt, in their order; each asks for `bestOf` choices. */
  readonly requests: ReadonlyArray<GenerationRequest>
  readonly n: number
  readonly bestOf: number
  readonly echo: boolean
  /** Alternatives to word with each token; undefined: no log probabilities. */
  readonly logprobs: number | undefined
  readonly stream: boolean
  readonly includeUsage: boolean
  /** Whether every chunk tells its usage. */
  readonly continuousUsage: boolean
  /** Fields of the body that change nothing, for the `x-mashbox-ignored` header. */
  readonly ignored: ReadonlyArray<string>
}

const decodeBody = decoder(CompletionRequest)

const placeholder = (value: unknown): unknown => value instanceof Int32Array ? [0] : value

/** Fields for the schema to check: lists that are packed stand for themselves. */
const withPlaceholders = (fields: WireObject["fields"]): WireObject["fields"] => {
  const { prompt } = fields
  return prompt === undefined ? fields : { ...fields, prompt: Array.isArray(prompt) ? prompt.map(placeholder) : placeholder(prompt) }
}

const tokens = (list: Int32Array): Prompt => ({ _tag: "Tokens", tokens: list })

const actedFields: ReadonlySet<string> = new Set(
  Object.keys(CompletionRequest.fields).filter((name) => !Object.hasOwn(inertFields, name))
)

const invalid = (field: string, message: string) => new InvalidRequest({ message: `${field}: ${message}`, field })

const isTokens = (prompt: ReadonlyArray<unknown>): prompt is ReadonlyArray<number> => typeof prompt[0] === "number"

/** The prompts of every shape that the field takes; `packed`: the field as it came. */
const prompts = ({ add_special_tokens: addBos, prompt, suffix }: CompletionRequest, packed: unknown): ReadonlyArray<Prompt> => {
  const text = (value: string): Prompt => ({
    _tag: "Text",
    text: value.toWellFormed(),
    parseSpecial: true,
    ...(addBos === undefined ? {} : { addBos }),
    ...(suffix === undefined || suffix === "" ? {} : { suffix: suffix.toWellFormed() })
  })
  if (typeof prompt === "string") return [text(prompt)]
  if (packed instanceof Int32Array) return [tokens(packed)]
  if (isTokens(prompt)) return [tokens(Int32Array.from(prompt))]
  const lists: ReadonlyArray<unknown> = Array.isArray(packed) ? packed : []
  return prompt.flatMap((item, index): ReadonlyArray<Prompt> => {
    if (typeof item === "string") return [text(item)]
    const list = lists[index]
    return typeof item === "number" ? [] : [tokens(list instanceof Int32Array ? list : Int32Array.from(item))]
  })
}

/** Combinations of fields that cannot be answered. */
const refuse = (body: CompletionRequest, asked: ReadonlyArray<Prompt>, bestOf: number): InvalidRequest | UnsupportedFeature | undefined => {
  const n = body.n ?? 1
  if (asked.length === 0) return invalid("prompt", "the list is empty")
  if (bestOf < n) return invalid("best_of", `must be at least n, which is ${n}`)
  if (bestOf > n && body.stream === true) return invalid("best_of", "the best of several continuations cannot be streamed")
  if (asked.length * bestOf > mostChoices) {
    const field = asked.length > 1 ? "prompt" : bestOf > n ? "best_of" : "n"
    return invalid(field, `at most ${mostChoices} continuations, over all prompts, can be asked for at a time`)
  }
  if (body.suffix !== undefined && body.suffix !== "" && asked.some((prompt) => prompt._tag === "Tokens")) {
    return invalid("suffix", "prompts of token ids have no place for it")
  }
  if (body.echo === true && body.logprobs !== undefined) {
    return new UnsupportedFeature({ message: "logprobs: together with echo they are not supported by this version", field: "logprobs" })
  }
  return undefined
}

/** A request body → what is asked for, or the field to blame. */
export const decode = (
  wire: WireObject,
  context: RequestContext
): Result.Result<DecodedCompletion, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    const refusal = refusedField(wire)
    if (refusal !== undefined) return yield* Result.fail(refusal)
    const body = yield* decodeBody({ ...wire, fields: withPlaceholders(wire.fields) })
    const n = body.n ?? 1
    const bestOf = body.best_of ?? n
    const asked = prompts(body, wire.fields["prompt"])
    const refused = refuse(body, asked, bestOf)
    if (refused !== undefined) return yield* Result.fail(refused)
    const format = yield* outputFormat(body)
    const options = tokenOptions(body, body.logprobs ?? (bestOf > n ? 0 : undefined))
    const common = {
      model: body.model,
      sampling: yield* sampling(body, context),
      ...(bestOf === 1 ? {} : { choices: bestOf }),
      ...(format === undefined ? {} : { outputFormat: format }),
      maxTokens: maxTokens(body),
      stopStrings: stopStrings(body),
      ...(options === undefined ? {} : { tokenOptions: options }),
      tenant: context.tenant,
      session: context.session
    }
    return {
      requests: asked.map((prompt) => ({ ...common, prompt })),
      n,
      bestOf,
      echo: body.echo ?? false,
      logprobs: body.logprobs,
      stream: body.stream ?? false,
      includeUsage: body.stream_options?.include_usage ?? false,
      continuousUsage: continuousUsage(body),
      ignored: [...ignoredFields(wire, actedFields), ...ignoredStreamOptions(wire, body)]
    }
  })

/** What every answer to one request repeats, and how its choices are worded. */
export interface CompletionHead extends ResponseHead {
  /** The seed of the first choice. */
  readonly seed: number
  readonly n: number
  readonly bestOf: number
  /** Texts of the prompts, for requests that want them before the continuations. */
  readonly echo: ReadonlyArray<string> | undefined
  readonly logprobs: number | undefined
}

interface Choice {
  readonly output: Output
  readonly finish: Finish
}

const meanLogprob = ({ output: { logprobs = [] } }: Choice): number =>
  logprobs.length === 0 ? -Infinity : logprobs.reduce((sum, { logprob }) => sum + logprob, 0) / logprobs.length

/** Choices count prompt by prompt: those of each. */
const byPrompt = <A>(choices: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(choices.length / size) }, (_, index) => choices.slice(index * size, (index + 1) * size))

const combinedUsage = (finishes: ReadonlyArray<Finish>, bestOf: number): Usage | undefined => {
  const usages = byPrompt(finishes, bestOf).flatMap(([first, ...others]) =>
    first === undefined ? [] : [combineChoices([first.usage, ...others.map(({ usage }) => usage)])]
  )
  const [first, ...others] = usages
  return first === undefined ? undefined : combinePrompts([first, ...others])
}

/** A text completion has no calls, so that nothing but its length can end it but itself. */
const finishReason = ({ reason }: Finish) => reason === "length" ? "length" : "stop"

const fingerprint = (head: CompletionHead) => `seed-${head.seed}`

/** The whole answer as one JSON text. */
export const completion = (head: CompletionHead, choices: ReadonlyArray<Choice>): string => {
  const usage = combinedUsage(choices.map(({ finish }) => finish), head.bestOf)
  const best = byPrompt(choices, head.bestOf).map((own) =>
    head.bestOf === head.n ? own : own.toSorted((a, b) => meanLogprob(b) - meanLogprob(a)).slice(0, head.n)
  )
  const body: Completion = {
    id: head.id,
    object: "text_completion",
    created: head.created,
    model: head.model,
    choices: best.flatMap((own, prompt) =>
      own.map(({ finish, output }, index) => ({
        index: prompt * head.n + index,
        text: (head.echo?.[prompt] ?? "") + output.text,
        logprobs: head.logprobs === undefined ? null : new CompletionsLogprobs(head.logprobs > 0).push(output.logprobs ?? []),
        finish_reason: finishReason(finish),
        ...choiceExtras(finish),
        ...promptTokens(finish)
      }))
    ),
    ...(usage === undefined ? {} : { usage: wireUsage(usage), timings: wireTimings(usage) }),
    system_fingerprint: fingerprint(head)
  }
  return JSON.stringify(body)
}

export interface ChunkOptions {
  /** How many choices the stream has. */
  readonly choices: number
  readonly includeUsage: boolean
  /** Prompt tokens, where every chunk tells its usage. */
  readonly usageOf: number | undefined
}

/** Events of one streamed answer: the prompts where they are echoed, the deltas of every choice, its last one, usage where it was asked for, `[DONE]`. */
export const chunks = (head: CompletionHead, { choices, includeUsage, usageOf }: ChunkOptions): StreamEncoder => {
  const fixed = `data: ${
    JSON.stringify({
      id: head.id,
      object: "text_completion",
      created: head.created,
      model: head.model,
      system_fingerprint: fingerprint(head)
    }).slice(0, -1)
  },"choices":[`
  const prefixFor = (index: number) => `${fixed}{"index":${index},"text":`
  const prefixes = Array.from({ length: choices }, (_, index) => prefixFor(index))
  const suffix = `,"logprobs":null,"finish_reason":null}]`
  const end = usageOf === undefined ? () => "}\n\n" : (generated = 0) => `${usageMember(usageOf, generated)}}\n\n`
  const { logprobs } = head
  const newTrackers = () => logprobs === undefined ? [] : prefixes.map(() => new CompletionsLogprobs(logprobs > 0))
  let trackers = newTrackers()
  return {
    start: () =>
      prefixes.map((prefix, index) => {
        const text = head.echo?.[Math.floor(index / head.n)]
        return text === undefined ? "" : prefix + JSON.stringify(text) + suffix + end()
      }).join(""),
    event: (event, choice = 0) => {
      const prefix = prefixes[choice] ?? prefixFor(choice)
      if (event._tag === "Finish") {
        const extras = members({ ...choiceExtras(event), ...promptTokens(event) })
        return `${prefix}"","logprobs":null,"finish_reason":"${finishReason(event)}"${extras}}]${
          usageMember(usageOf, event.usage.completionTokens)
        },"timings":${JSON.stringify(wireTimings(event.usage))}}\n\n`
      }
      if (event._tag !== "Text") return ""
      const tracker = trackers[choice]
      if (tracker === undefined) return prefix + JSON.stringify(event.text) + suffix + end(event.generated)
      return `${prefix}${JSON.stringify(event.text)},"logprobs":${
        JSON.stringify(tracker.push(event.logprobs ?? []))
      },"finish_reason":null}]${end(event.generated)}`
    },
    end: (finishes) => {
      const usage = includeUsage ? combinedUsage(finishes, head.n) : undefined
      const last = usage === undefined
        ? ""
        : `${fixed}],"usage":${JSON.stringify(wireUsage(usage))},"timings":${JSON.stringify(wireTimings(usage))}}\n\n`
      return `${last}data: [DONE]\n\n`
    },
    reset: () => {
      trackers = newTrackers()
    },
    error: (error) => errorFrame(error, head.id),
    keepAlive: () => ": keep-alive\n\n"
  }
}
