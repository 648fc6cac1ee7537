import { Effect, Result } from "effect"
import { basename } from "node:path"
import type { EngineError, ModelError } from "../domain/Errors.ts"
import { wireSampling } from "../domain/Sampling.ts"
import * as Inspection from "../engine/Inspection.ts"
import type { NativeInspection } from "../engine/Native.ts"
import { detectSyntax } from "../generation/tools/detectSyntax.ts"
import { loadOptions } from "../Mashbox.ts"
import type { CatalogEntry } from "../models/Catalog.ts"
import * as GgufMetadata from "../models/GgufMetadata.ts"
import type { TensorInfo, Vocabulary } from "../models/ModelMetadata.ts"
import { ChatTemplate } from "../prompt/ChatTemplate.ts"
import type { SettingsValue } from "../Settings.ts"
import * as GgufTokenizer from "../tokenizer/GgufTokenizer.ts"
import type { Tokenizer } from "../tokenizer/Tokenizer.ts"
import { formatBytes } from "./Status.ts"

export interface Problem {
  /** The key, tensor or setting to blame, where there is one. */
  readonly subject: string | null
  readonly message: string
}

/** What `mashbox models inspect --json` prints. Sizes are bytes. */
export interface ModelReport {
  readonly id: string
  readonly file: string
  readonly parts: number
  readonly file_bytes: number
  readonly architecture: string
  readonly parameters: number
  readonly bits_per_weight: number
  readonly tensors: { readonly count: number; readonly by_format: ReadonlyArray<FormatShare> }
  readonly context_length: number
  /** Blocks for multi-token prediction, which are kept aside. */
  readonly prediction_blocks: number
  readonly tokenizer: {
    readonly model: string
    readonly pre_tokenizer: string | null
    readonly tokens: number
    readonly bos: string | null
    readonly eos: string | null
    readonly end_tokens: ReadonlyArray<string>
  } | null
  readonly chat: {
    /** Whose template renders chats. */
    readonly template: "model" | "catalog" | "chatml"
    readonly tool_syntax: string
    readonly reasoning: readonly [open: string, close: string] | null
  } | null
  /** What `--sampling model` would use where a request is silent, as far as the file and the catalog say. */
  readonly sampling: Readonly<Record<string, number>>
  readonly memory: {
    readonly slots: number
    readonly context_length: number
    readonly kv_type: "f16" | "f32"
    readonly weights: number
    readonly kv_cache: number
    readonly scratch: number
    readonly total: number
    readonly available: number
    readonly fits: boolean
    readonly largest_context: number
    readonly largest_slots: number
  } | null
  /** What would not work. */
  readonly problems: ReadonlyArray<Problem>
}

export interface FormatShare {
  readonly format: string
  readonly tensors: number
  readonly bytes: number
}

/** What a server would be started with. */
export type ReportOptions = Pick<SettingsValue, "model" | "catalogEntry" | "contextLength" | "slots" | "kvType" | "threads">

/** Largest first. */
const byFormat = (tensors: ReadonlyArray<TensorInfo>): ReadonlyArray<FormatShare> =>
  Object.entries(Object.groupBy(tensors, ({ type }) => type)).map(([format, of = []]) => ({
    format,
    tensors: of.length,
    bytes: of.reduce((total, { bytes }) => total + bytes, 0)
  })).toSorted((a, b) => b.bytes - a.bytes)

const chatTemplateKey = "tokenizer.chat_template"

const problemOf = (error: EngineError | ModelError): Problem => ({ subject: error.subject ?? null, message: error.message })

const describeTokenizer = (vocabulary: Vocabulary, tokenizer: Tokenizer["Service"]): NonNullable<ModelReport["tokenizer"]> => ({
  model: vocabulary.model,
  pre_tokenizer: vocabulary.pre ?? null,
  tokens: tokenizer.size,
  bos: tokenizer.bos ?? null,
  eos: tokenizer.eos ?? null,
  end_tokens: Array.from(tokenizer.endTokens, (id) => vocabulary.tokens[id] ?? "")
})

/** The chat template and what it shows; undefined where there is none, which is no fault of a model that only completes text. */
const describeChat = Effect.fnUntraced(
  function*(template: string | undefined, tokenizer: Tokenizer["Service"], entry: CatalogEntry | undefined) {
    const { bos, eos, specialTexts } = tokenizer
    const made = yield* Effect.result(ChatTemplate.make({
      template: entry?.chatTemplate ?? template,
      bos,
      eos,
      specialTexts,
      ...(entry?.reasoning === undefined ? {} : { reasoningTags: entry.reasoning })
    }))
    if (Result.isFailure(made)) {
      if (template === undefined && entry?.chatTemplate === undefined) return undefined
      return { subject: chatTemplateKey, message: `${chatTemplateKey}: ${made.failure.message}` }
    }
    const chat: NonNullable<ModelReport["chat"]> = {
      template: entry?.chatTemplate !== undefined ? "catalog" : template === undefined ? "chatml" : "model",
      tool_syntax: entry?.toolSyntax ?? (yield* detectSyntax(made.success)).syntax.name,
      reasoning: entry?.reasoning ?? shownTags(entry?.chatTemplate ?? template, made.success)
    }
    return chat
  }
)

/** The tags around reasoning, where the template has them in its text. */
const shownTags = (template: string | undefined, { reasoning }: ChatTemplate["Service"]) =>
  reasoning?.tags.find(([open]) => template?.includes(open) === true) ?? null

const describeMemory = (plan: NativeInspection, kvType: "f16" | "f32"): NonNullable<ModelReport["memory"]> => {
  const { kvCache, scratch, weights } = plan.memory
  return {
    slots: plan.slots,
    context_length: plan.contextLength,
    kv_type: kvType,
    weights,
    kv_cache: kvCache,
    scratch,
    total: weights + kvCache + scratch,
    available: plan.availableMemory,
    fits: plan.fits,
    largest_context: plan.largestContext,
    largest_slots: plan.largestSlots
  }
}

const doesNotFit = (plan: NativeInspection): Problem => ({
  subject: "ctx",
  message: plan.largestContext === 0
    ? `ctx: not enough memory for any context with ${plan.slots} slots`
    : `ctx: not enough memory; the largest with ${plan.slots} slots is ${plan.largestContext}`
})

/** Looks at a file with everything that would serve it. Fails where it is no model file that can be read. */
export const make = Effect.fnUntraced(function*(options: ReportOptions) {
  const { catalogEntry: entry, kvType, model: path } = options
  const problems: Array<Problem> = []
  const file = yield* GgufMetadata.inspect(path)
  let tokenizer: ModelReport["tokenizer"] = null
  let chat: ModelReport["chat"] = null
  if (Result.isFailure(file.vocabulary)) problems.push(problemOf(file.vocabulary.failure))
  else {
    const found = file.vocabulary.success
    const vocabulary = entry?.preTokenizer === undefined ? found : { ...found, pre: entry.preTokenizer }
    const made = yield* Effect.result(GgufTokenizer.make(vocabulary))
    if (Result.isFailure(made)) problems.push(problemOf(made.failure))
    else {
      tokenizer = describeTokenizer(vocabulary, made.success)
      const described = yield* describeChat(file.chatTemplate, made.success, entry)
      if (described !== undefined && "message" in described) problems.push(described)
      else chat = described ?? null
    }
  }
  if (Result.isFailure(file.sampling)) problems.push(problemOf(file.sampling.failure))
  const plan = yield* Effect.result(Inspection.inspect(loadOptions(options)))
  if (Result.isFailure(plan)) problems.push(problemOf(plan.failure))
  else if (!plan.success.fits) problems.push(doesNotFit(plan.success))
  const report: ModelReport = {
    id: entry?.id ?? file.id,
    file: path,
    parts: file.parts,
    file_bytes: file.fileBytes,
    architecture: file.architecture,
    parameters: file.parameters,
    bits_per_weight: file.parameters === 0 ? 0 : file.tensorBytes * 8 / file.parameters,
    tensors: { count: file.tensors.length, by_format: byFormat(file.tensors) },
    context_length: file.contextLength,
    prediction_blocks: Result.isSuccess(plan) ? plan.success.predictionBlocks : 0,
    tokenizer,
    chat,
    sampling: wireSampling({ ...(Result.isSuccess(file.sampling) ? file.sampling.success : {}), ...entry?.sampling }),
    memory: Result.isSuccess(plan) ? describeMemory(plan.success, kvType) : null,
    problems: problems.filter(({ message }, index) => problems.findIndex((other) => other.message === message) === index)
  }
  return report
})

/** 1000-based, three significant digits: "5.82 M". */
const formatCount = (count: number): string => {
  const units = ["", " k", " M", " G", " T"]
  const exponent = Math.min(Math.floor(Math.log10(Math.max(count, 1)) / 3), units.length - 1)
  return exponent === 0 ? String(count) : `${(count / 1000 ** exponent).toPrecision(3)}${units[exponent]}`
}

const samplingText = (sampling: ModelReport["sampling"]): string => {
  const named = Object.entries(sampling)
  return named.length === 0 ? "not said (greedy)" : named.map(([name, value]) => `${name} ${value}`).join(", ")
}

const predictionRows = (blocks: number): ReadonlyArray<string> =>
  blocks === 0 ? [] : [`multi-token prediction, ${blocks} ${blocks === 1 ? "block" : "blocks"}, kept aside: neither read nor counted`]

/** The report for people. */
export const reportLines = (report: ModelReport): ReadonlyArray<string> => {
  const { chat, memory, problems, tensors, tokenizer } = report
  const row = (name: string, text: string) => `${name.padEnd(12)} ${text}`
  const share = ({ bytes, format, tensors: count }: FormatShare) =>
    row("", `${format.padEnd(8)} ${String(count).padStart(5)} tensors ${formatBytes(bytes).padStart(9)}`)
  return [
    row("model", `${report.id} (${basename(report.file)}${report.parts === 1 ? "" : `, ${report.parts} parts`})`),
    row("family", report.architecture),
    row(
      "parameters",
      `${formatCount(report.parameters)}, ${report.bits_per_weight.toPrecision(3)} bits each, ${formatBytes(report.file_bytes)} on disk`
    ),
    row("tensors", String(tensors.count)),
    ...tensors.by_format.map(share),
    row("context", `${report.context_length} tokens`),
    ...predictionRows(report.prediction_blocks).map((text) => row("prediction", text)),
    ...(tokenizer === null ? [] : [
      row(
        "tokenizer",
        `${tokenizer.model}${tokenizer.pre_tokenizer === null ? "" : ` (${tokenizer.pre_tokenizer})`}, ${tokenizer.tokens} tokens, ` +
          `ends with ${tokenizer.end_tokens.join(" ") || "nothing"}`
      )
    ]),
    row(
      "chat",
      chat === null
        ? (tokenizer === null || problems.some(({ subject }) => subject === chatTemplateKey)
          ? "unknown"
          : "no template: text completions only")
        : `${{ model: "its own template", catalog: "the catalog's template", chatml: "ChatML" }[chat.template]}, ` +
          `tool calls as ${chat.tool_syntax}${chat.reasoning === null ? "" : `, reasoning in ${chat.reasoning.join(" … ")}`}`
    ),
    row("sampling", samplingText(report.sampling)),
    ...(memory === null ? [] : [
      row(
        "memory",
        `${formatBytes(memory.total)} for ${memory.slots} slots of ${memory.context_length} tokens (${memory.kv_type}): weights ` +
          `${formatBytes(memory.weights)}, KV cache ${formatBytes(memory.kv_cache)}, scratch ${formatBytes(memory.scratch)}`
      ),
      row(
        "",
        `${formatBytes(memory.available)} are available: at most ${memory.largest_context} tokens with ${memory.slots} slots, or ` +
          `${memory.largest_slots} slots of ${memory.context_length}`
      )
    ]),
    ...(report.problems.length === 0
      ? [row("problems", "none")]
      : problems.map(({ message }, index) => row(index === 0 ? "problems" : "", message)))
  ]
}
