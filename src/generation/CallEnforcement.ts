import { Effect, Result } from "effect"
import { createHash } from "node:crypto"
import { InvalidRequest, type Overloaded, UnsupportedFeature } from "../domain/Errors.ts"
import type { OutputFormat } from "../domain/OutputFormat.ts"
import { CurrentTenant } from "../domain/Tenant.ts"
import type { Tool, ToolChoice } from "../domain/Tool.ts"
import { GrammarError } from "../grammar/GrammarError.ts"
import type { GrammarThread } from "../grammar/GrammarThread.ts"
import { encodeGrammar } from "../grammar/IrEncoder.ts"
import { type CallGrammarOptions, compileCalls } from "../grammar/tools/CallGrammar.ts"
import { warmUpTools } from "../grammar/WarmUp.ts"
import { Scale, type Weight } from "../grammar/Weight.ts"
import { noReasoning, type ReasoningFormat, type ReasoningState, usualReasoning } from "../prompt/Reasoning.ts"
import { nextTurn } from "../tokenizer/InTurns.ts"
import type { Tokenizer } from "../tokenizer/Tokenizer.ts"
import type { DetectedSyntax } from "./tools/detectSyntax.ts"

/** What a request says about its calls. */
export interface CallRequest {
  /** Those that the model is shown. */
  readonly tools: ReadonlyArray<Tool>
  readonly choice: ToolChoice | undefined
  /** What the answer has to be where it is no call. */
  readonly format?: OutputFormat
  readonly parallel: boolean
  /** Where the prompt leaves the model. */
  readonly reasoning: ReasoningState
  /** Tokens of reasoning, where they are limited. */
  readonly reasoningLimit?: number | undefined
  /** The output continues a text: it has no channels. */
  readonly plain?: boolean
  /** The output continues an answer of the model. */
  readonly continues?: boolean
}

/** What is to be compiled for a request. */
export interface WeighedCalls {
  readonly tools: ReadonlyArray<Tool>
  /** It is too much for the event loop. */
  readonly heavy: boolean
}

export interface CallModel {
  readonly syntax: DetectedSyntax
  readonly format: ReasoningFormat | undefined
  readonly tokenizer: Tokenizer["Service"]
  /** Compiles what is too much for the event loop. */
  readonly thread: Pick<GrammarThread, "compile">
  /** The syntax of calls is to be drawn greedily. */
  readonly greedySyntax?: boolean
}

/** Special tokens of a vocabulary with their ids, which mark calls and reasoning. */
export const specialTokens = (
  { specialTexts, tokenId }: Pick<Tokenizer["Service"], "specialTexts" | "tokenId">
): ReadonlyMap<string, number> =>
  new Map(specialTexts.flatMap((text) => {
    const id = tokenId(text)
    return id === undefined ? [] : [[text, id]]
  }))

/** Grammars of the latest requests; agents send the same tools every turn. */
const mostKept = 32

const refusal = ({ message, path, reason }: GrammarError, field: string) => {
  const told = path === "" ? { message: `${field}: ${message}`, field } : { message, field: path }
  return reason === "Unsupported" ? new UnsupportedFeature(told) : new InvalidRequest(told)
}

const tooLarge = new GrammarError({ reason: "TooLarge", message: "too large to be enforced", path: "" })

const weighTool = (scale: Scale, { inputGrammar, parameters }: Tool): Weight =>
  inputGrammar === undefined ? scale.add(parameters) : scale.addProgram(inputGrammar.definition)

const weighFormat = (scale: Scale, format: OutputFormat): Weight => {
  switch (format._tag) {
    case "JsonObject":
      return "light"
    case "JsonSchema":
      return scale.add(format.schema)
    case "Regex":
      return scale.addProgram(format.pattern)
    case "Choice":
      return scale.add(format.choices)
    case "Grammar":
      return scale.addProgram(format.text)
    case "Tags":
      return scale.add([format.triggers, format.tags])
  }
}

/** Makes the grammar that holds the output of a request to calls as its tools, their schemas and its choice allow them. */
export class CallEnforcement {
  private readonly model: CallModel
  private readonly specials: ReadonlySet<string>
  /** What was made of each request: bytes, or none where the output goes free. */
  private readonly kept = new Map<string, Uint8Array | undefined>()

  constructor(model: CallModel) {
    this.model = model
    this.specials = new Set(model.tokenizer.specialTexts)
  }

  /** What a request asks for in a form, which needs no look at the prompt: refused where it is too large. undefined: the output is free. */
  weigh(
    { choice, continues, format, tools: shown }: Pick<CallRequest, "choice" | "continues" | "format" | "tools">
  ): Effect.Effect<WeighedCalls | undefined, InvalidRequest | UnsupportedFeature> {
    const named = choice?.names === undefined ? shown : shown.filter(({ name }) => choice.names?.includes(name))
    const asksForCalls = named.length > 0 && (choice !== undefined || this.begins(continues) || named.some(isHeld))
    if (format === undefined && !asksForCalls) return Effect.succeed(undefined)
    const scale = new Scale()
    const isTooLarge = (tool: Tool) => weighTool(scale, tool) === "tooLarge"
    // What is promised is weighed first, so that it is to blame for itself only.
    const refused = named.find((tool) => isHeld(tool) && isTooLarge(tool))
    if (refused !== undefined) return Effect.fail(refusal(tooLarge, refused.field ?? `tools.${refused.name}`))
    if (format !== undefined && weighFormat(scale, format) === "tooLarge") return Effect.fail(refusal(tooLarge, format.field))
    // Calls of other tools then have any arguments, as those of every schema that cannot be enforced.
    const tools = named.map((tool) => isHeld(tool) || !isTooLarge(tool) ? tool : { ...tool, parameters: { type: "object" } })
    return Effect.succeed({ tools, heavy: scale.heavy })
  }

  /** The grammar's bytes; undefined where the output is free. Large grammars are compiled in another thread, and interrupting withdraws them. */
  readonly grammar = Effect.fnUntraced(
    function*(this: CallEnforcement, request: CallRequest, before?: WeighedCalls) {
      const { choice, format } = request
      const weighed = before ?? (yield* this.weigh(request))
      if (weighed === undefined) return undefined
      const { heavy, tools } = weighed
      const options = this.options(request, tools)
      const { token: _, ...told } = options
      const work = JSON.stringify(told)
      const key = createHash("sha256").update(work).digest("base64")
      if (this.kept.has(key)) {
        const known = this.kept.get(key)
        this.keep(key, known)
        return known
      }
      const promised = isPromised(tools, choice)
      let compiled = yield* this.compile(options, work, heavy)
      if (Result.isFailure(compiled) && format !== undefined && !promised && compiled.failure.reason !== "TooLarge") {
        compiled = yield* this.compile({ ...options, tools: [] }, JSON.stringify({ ...told, tools: [] }), heavy)
      }
      if (Result.isFailure(compiled)) {
        if (promised || format !== undefined) return yield* refusal(compiled.failure, format?.field ?? choice?.field ?? "tools")
        // Free output that cannot be held to anything stays free; what was promised is refused.
        this.keep(key, undefined)
        return undefined
      }
      this.keep(key, compiled.success)
      return compiled.success
    }.bind(this)
  )

  /**
   * Compiles what tools often have, a piece at a time: the first request with tools then finds code that has run before. Nothing is kept.
   */
  readonly warmUp: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(warmUpTools, (tools) =>
      Effect.andThen(
        Effect.sync(() => {
          const options = this.options({ tools, choice: undefined, parallel: true, reasoning: noReasoning }, tools)
          return Result.map(compileCalls(options), encodeGrammar)
        }),
        nextTurn
      ), { discard: true })
  )

  private compile(
    options: CallGrammarOptions,
    work: string,
    heavy: boolean
  ): Effect.Effect<Result.Result<Uint8Array, GrammarError>, Overloaded> {
    if (!heavy) return Effect.sync(() => Result.map(compileCalls(options), encodeGrammar))
    return Effect.flatMap(CurrentTenant, (tenant) =>
      this.model.thread.compile(work, tenant).pipe(
        Effect.map(Result.succeed),
        Effect.catchTag("GrammarError", (error) => Effect.succeed(Result.fail(error)))
      ))
  }

  /** Whether free output is held to calls from where they begin; in some syntaxes that is only the beginning of an answer. */
  private begins(continues: boolean | undefined): boolean {
    const { marksReasoning, name } = this.model.syntax.syntax
    if (marksReasoning === true) return this.hasChannels && continues !== true
    return !name.startsWith("llama3") || continues !== true
  }

  /** Whether the vocabulary has the tokens that messages in channels are made of. */
  private get hasChannels(): boolean {
    return ["<|start|>", "<|channel|>", "<|message|>", "<|end|>"].every((text) => this.specials.has(text))
  }

  /** Messages of reasoning in channels that may come; undefined: any number. */
  private thoughts({ choice, reasoningLimit }: CallRequest): number | undefined {
    if (choice?.required !== true && reasoningLimit === undefined) return undefined
    // A model whose vocabulary has no channels opens none by itself.
    return reasoningLimit === 0 || (choice?.required === true && !this.hasChannels) ? 0 : 1
  }

  private options(request: CallRequest, tools: ReadonlyArray<Tool>): CallGrammarOptions {
    const { choice, format, parallel, plain, reasoning } = request
    const { syntax, tokenizer } = this.model
    const thoughts = syntax.syntax.marksReasoning === true ? this.thoughts(request) : undefined
    const [first] = (this.model.format ?? usualReasoning).tags
    const before = reasoning._tag === "Open"
      ? { close: reasoning.closing }
      // A model whose vocabulary has no token for it opens no reasoning by itself.
      : reasoning._tag === "None" && first !== undefined && this.specials.has(first[0])
      ? { open: first[0], close: first[1] }
      : undefined
    return {
      syntax: plain === true ? "" : syntax.syntax.name,
      sample: syntax.sample,
      tools: tools.map(({ field, inputGrammar, name, parameters, strict }) => ({
        name,
        ...(parameters === undefined ? {} : { parameters }),
        ...(strict === undefined ? {} : { strict }),
        ...(inputGrammar === undefined ? {} : { inputGrammar }),
        ...(field === undefined ? {} : { field })
      })),
      required: choice?.required ?? false,
      ...(format === undefined ? {} : { format }),
      // An answer in a format is no call, and marks nothing.
      ...(this.model.greedySyntax === true && format === undefined ? { marksContent: true } : {}),
      parallel: parallel && choice?.once !== true,
      ...(thoughts === undefined ? {} : { thoughts }),
      ...(before === undefined || syntax.syntax.marksReasoning === true ? {} : { reasoning: before }),
      token: (text) => this.specials.has(text) ? tokenizer.tokenId(text) : undefined
    }
  }

  private keep(key: string, bytes: Uint8Array | undefined): void {
    this.kept.delete(key)
    this.kept.set(key, bytes)
    const [oldest] = this.kept.keys()
    if (this.kept.size > mostKept && oldest !== undefined) this.kept.delete(oldest)
  }
}

/** Whether a request promises something about its calls. */
export const isPromised = (tools: ReadonlyArray<Tool>, choice: ToolChoice | undefined): boolean =>
  choice !== undefined || tools.some(isHeld)

/** Whether what a tool is called with was promised to be valid. */
const isHeld = ({ inputGrammar, strict }: Tool): boolean => strict === true || inputGrammar !== undefined
