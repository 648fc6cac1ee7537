import { Result } from "effect"
import { createHash } from "node:crypto"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { OutputFormat } from "../domain/OutputFormat.ts"
import type { Tool, ToolChoice } from "../domain/Tool.ts"
import type { GrammarError } from "../grammar/GrammarError.ts"
import { encodeGrammar } from "../grammar/IrEncoder.ts"
import { type CallGrammarOptions, compileCalls } from "../grammar/tools/CallGrammar.ts"
import { type ReasoningFormat, type ReasoningState, usualReasoning } from "../prompt/Reasoning.ts"
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
  /** The output continues a text: it has no channels. */
  readonly plain?: boolean
}

export interface CallModel {
  readonly syntax: DetectedSyntax
  readonly format: ReasoningFormat | undefined
  readonly tokenizer: Tokenizer["Service"]
}

/** Grammars of the latest requests; agents send the same tools every turn. */
const mostKept = 32

const refusal = ({ message, path, reason }: GrammarError, field: string) => {
  const told = path === "" ? { message: `${field}: ${message}`, field } : { message, field: path }
  return reason === "Unsupported" ? new UnsupportedFeature(told) : new InvalidRequest(told)
}

/** Makes the grammar that holds the output of a request to calls as its tools, their schemas and its choice allow them. */
export class CallEnforcement {
  private readonly model: CallModel
  private readonly specials: ReadonlySet<string>
  private readonly kept = new Map<string, Uint8Array>()

  constructor(model: CallModel) {
    this.model = model
    this.specials = new Set(model.tokenizer.specialTexts)
  }

  /** The grammar's bytes; undefined where the output is free. */
  grammar(request: CallRequest): Result.Result<Uint8Array | undefined, InvalidRequest | UnsupportedFeature> {
    const { choice, format } = request
    const tools = choice?.names === undefined ? request.tools : request.tools.filter(({ name }) => choice.names?.includes(name))
    const asksForCalls = tools.length > 0 && (choice !== undefined || this.marksCalls() || tools.some(isHeld))
    if (format === undefined && !asksForCalls) return Result.succeed(undefined)
    const options = this.options(request, tools)
    const { token: _, ...told } = options
    const key = createHash("sha256").update(JSON.stringify(told)).digest("base64")
    const known = this.kept.get(key)
    if (known !== undefined) {
      this.keep(key, known)
      return Result.succeed(known)
    }
    const promised = isPromised(tools, choice)
    let compiled = compileCalls(options)
    if (Result.isFailure(compiled) && format !== undefined && !promised) compiled = compileCalls({ ...options, tools: [] })
    if (Result.isFailure(compiled)) {
      // Free output that cannot be held to anything stays free; what was promised is refused.
      return promised || format !== undefined
        ? Result.fail(refusal(compiled.failure, format?.field ?? choice?.field ?? "tools"))
        : Result.succeed(undefined)
    }
    const bytes = encodeGrammar(compiled.success)
    this.keep(key, bytes)
    return Result.succeed(bytes)
  }

  /** Whether a text or a token shows that a call begins, so that free output needs no grammar before. */
  private marksCalls(): boolean {
    const { markers, name } = this.model.syntax.syntax
    return name !== "harmony" && !name.startsWith("llama3") && markers.length > 0
  }

  private options({ choice, format, parallel, plain, reasoning }: CallRequest, tools: ReadonlyArray<Tool>): CallGrammarOptions {
    const { syntax, tokenizer } = this.model
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
      parallel: parallel && choice?.once !== true,
      ...(before === undefined || syntax.syntax.marksReasoning === true ? {} : { reasoning: before }),
      token: (text) => this.specials.has(text) ? tokenizer.tokenId(text) : undefined
    }
  }

  private keep(key: string, bytes: Uint8Array): void {
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
