import type { OutputEvent } from "../domain/OutputEvent.ts"
import type { Tool } from "../domain/Tool.ts"
import type { EngineLogprobs } from "../engine/Logprobs.ts"
import type { ReasoningFormat, ReasoningState } from "../prompt/Reasoning.ts"
import type { StreamDecoder } from "../tokenizer/Tokenizer.ts"
import { ReasoningSplitter } from "./ReasoningSplitter.ts"
import * as StopStrings from "./StopStrings.ts"
import type { TokenTrail } from "./TokenTrail.ts"
import { CallHold } from "./tools/CallHold.ts"
import { CallSpacing } from "./tools/CallSpacing.ts"
import type { ToolCallParser, ToolCallSink, ToolCallSyntax } from "./tools/ToolCallParser.ts"

/** How tool calls are taken out of the text. */
export interface ToolCallOptions {
  readonly syntax: ToolCallSyntax
  /** Those that the request offers. */
  readonly offered: ReadonlyArray<Tool>
  readonly newId: () => string
  /** False: the output ends with its first call. */
  readonly parallel: boolean
  /** Characters of a call that are held back until it is sure that it is one, where nothing promises it. Default 0. */
  readonly patience?: number
}

export interface OutputPipelineOptions {
  readonly decoder: StreamDecoder
  /** Where the prompt leaves the model. Default: in no reasoning. */
  readonly reasoning?: ReasoningState
  /** Default: as most models mark it. */
  readonly format?: ReasoningFormat
  /** The output is no turn of a chat: reasoning tags in it are text. Default false. */
  readonly plain?: boolean
  readonly stopStrings: ReadonlyArray<string>
  /** Stop strings are not looked for in the first tokens' text. Default 0. */
  readonly minTokens?: number
  /** A stop string that ends the output stays in it. Default false. */
  readonly includeStop?: boolean
  /** Puts log probabilities to the text; every token must come with them. */
  readonly trail?: TokenTrail
  /** Absent: calls stay text. */
  readonly tools?: ToolCallOptions
  readonly emit: (event: OutputEvent) => void
}

/** Token ids → text → reasoning and answer → tool calls and text → text up to its first stop string. One per attempt; nothing here waits. */
export class OutputPipeline {
  private readonly decoder: StreamDecoder
  /** Absent where the syntax of calls marks reasoning. */
  private readonly splitter: ReasoningSplitter | undefined
  private readonly plain: boolean
  private readonly parser: ToolCallParser | undefined
  private hold: CallHold | undefined
  private readonly spacing: CallSpacing | undefined
  private readonly stopStrings: ReadonlyArray<string>
  private stops: ReturnType<typeof StopStrings.make> | undefined
  private readonly minTokens: number
  private readonly includeStop: boolean
  private readonly trail: TokenTrail | undefined
  private readonly emit: (event: OutputEvent) => void
  private count = 0
  private held = 0
  private endedByCall = false
  /** Tokens between a pair of reasoning tags, and those that closed it. */
  reasoningTokens = 0
  /** Calls that have begun. */
  calls = 0
  /** The stop string that ended the output. */
  stopString: string | undefined

  constructor(options: OutputPipelineOptions) {
    this.decoder = options.decoder
    this.stopStrings = options.stopStrings
    this.stops = this.makeStops()
    this.plain = options.plain ?? false
    this.minTokens = options.minTokens ?? 0
    this.includeStop = options.includeStop ?? false
    this.trail = options.trail
    this.emit = options.emit
    const { tools } = options
    const turnEndsInBreak = !this.plain && options.format?.turnEndsInBreak === true
    if (tools !== undefined || turnEndsInBreak) this.spacing = new CallSpacing((text) => this.emitText(text), turnEndsInBreak)
    if (tools !== undefined) this.parser = this.makeParser(tools)
    const { parser } = this
    if (this.plain || tools?.syntax.marksReasoning === true) return
    this.splitter = new ReasoningSplitter(
      (text) => parser === undefined ? this.text(text) : parser.push(text),
      (text) => this.emit({ _tag: "Reasoning", text }),
      options.reasoning,
      options.format?.tags
    )
  }

  /** The output has ended, at a stop string or with the only call there may be; later tokens are dropped. */
  get over(): boolean {
    return this.stopString !== undefined || this.endedByCall
  }

  /** True when the output is over. */
  push(token: number, logprobs?: EngineLogprobs): boolean {
    if (this.over) return true
    this.count++
    const text = this.decoder.push(token)
    if (logprobs !== undefined) this.trail?.push(token, logprobs, text)
    const reasoned = this.inReasoning
    this.take(text)
    if (reasoned || this.inReasoning) this.reasoningTokens++
    return this.over
  }

  /** Hands out what was held back: the output ended without a stop string, or with one in what was held. */
  end(): void {
    if (this.over) return
    const last = this.decoder.end()
    this.trail?.pushRest(last)
    this.take(last)
    this.splitter?.end()
    this.parser?.end()
    this.hold?.close()
    if (this.over) return
    this.releaseHeld()
    this.spacing?.end()
  }

  private get inReasoning(): boolean {
    return this.splitter?.inReasoning ?? this.parser?.inReasoning ?? false
  }

  private take(text: string): void {
    if (text === "") return
    if (this.splitter !== undefined) this.splitter.push(text)
    else if (this.parser !== undefined) this.parser.push(text)
    else this.text(text)
  }

  private makeStops() {
    return this.stopStrings.length === 0 ? undefined : StopStrings.make(this.stopStrings)
  }

  private makeParser({ newId, offered, parallel, patience = 0, syntax }: ToolCallOptions): ToolCallParser {
    const ids = new Set<string>()
    const sink: ToolCallSink = {
      text: (text) => this.text(text),
      reasoning: (text) => this.emit({ _tag: "Reasoning", text }),
      start: (name, written) => {
        if (this.over) return
        this.releaseHeld()
        this.spacing?.call()
        const id = written !== undefined && /^[\w-]{1,64}$/.test(written) && !ids.has(written) ? written : newId()
        ids.add(id)
        this.emit({ _tag: "ToolCall", index: this.calls++, id, name })
      },
      argument: (text) => {
        if (!this.over) this.emit({ _tag: "ToolArguments", index: this.calls - 1, text })
      },
      end: () => {
        this.endedByCall ||= !parallel
      }
    }
    if (patience > 0) this.hold = new CallHold(sink, patience)
    return syntax.parser(this.hold ?? sink, offered)
  }

  /** Text that was held back for a stop string that does not come: what follows is no text. */
  private releaseHeld(): void {
    const rest = this.stops?.end() ?? ""
    if (rest !== "") this.show(rest, 0)
    this.stops = this.makeStops()
  }

  private text(piece: string): void {
    if (this.over) return
    if (this.stops === undefined || this.count <= this.minTokens) return this.show(piece, 0)
    const { matched, text } = this.stops.push(piece)
    const kept = matched !== undefined && this.includeStop ? matched : ""
    if (text + kept !== "") this.show(text + kept, this.stops.heldLength() - kept.length)
    this.stopString = matched
  }

  /** `held` characters of what was decoded are not shown yet. */
  private show(text: string, held: number): void {
    this.held = held
    if (this.spacing === undefined) this.emitText(text)
    else this.spacing.text(text)
  }

  private emitText(text: string): void {
    const { held } = this
    this.emit(this.trail === undefined ? { _tag: "Text", text } : { _tag: "Text", text, logprobs: this.trail.take(text, held) })
  }
}
