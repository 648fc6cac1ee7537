import type { OutputEvent } from "../domain/OutputEvent.ts"
import type { EngineLogprobs } from "../engine/Logprobs.ts"
import type { StreamDecoder } from "../tokenizer/Tokenizer.ts"
import { ReasoningSplitter } from "./ReasoningSplitter.ts"
import * as StopStrings from "./StopStrings.ts"
import type { TokenTrail } from "./TokenTrail.ts"

export interface OutputPipelineOptions {
  readonly decoder: StreamDecoder
  readonly startsInReasoning: boolean
  readonly stopStrings: ReadonlyArray<string>
  /** Stop strings are not looked for in the first tokens' text. Default 0. */
  readonly minTokens?: number
  /** A stop string that ends the output stays in it. Default false. */
  readonly includeStop?: boolean
  /** Puts log probabilities to the text; every token must come with them. */
  readonly trail?: TokenTrail
  readonly emit: (event: OutputEvent) => void
}

/** Token ids → text → reasoning and answer → the answer up to its first stop string. One per attempt; nothing here waits. */
export class OutputPipeline {
  private readonly decoder: StreamDecoder
  private readonly splitter: ReasoningSplitter
  private readonly stops: ReturnType<typeof StopStrings.make> | undefined
  private readonly minTokens: number
  private readonly includeStop: boolean
  private readonly trail: TokenTrail | undefined
  private readonly emit: (event: OutputEvent) => void
  private count = 0
  /** The stop string that ended the output. */
  stopString: string | undefined

  constructor(options: OutputPipelineOptions) {
    this.decoder = options.decoder
    this.stops = options.stopStrings.length === 0 ? undefined : StopStrings.make(options.stopStrings)
    this.minTokens = options.minTokens ?? 0
    this.includeStop = options.includeStop ?? false
    this.trail = options.trail
    this.emit = options.emit
    this.splitter = new ReasoningSplitter(
      options.startsInReasoning,
      (text) => this.text(text),
      (text) => this.emit({ _tag: "Reasoning", text })
    )
  }

  /** True when the output has ended at a stop string; later tokens are dropped. */
  push(token: number, logprobs?: EngineLogprobs): boolean {
    if (this.stopString !== undefined) return true
    this.count++
    const text = this.decoder.push(token)
    if (logprobs !== undefined) this.trail?.push(token, logprobs, text)
    this.splitter.push(text)
    return this.stopString !== undefined
  }

  /** Hands out what was held back: the output ended without a stop string, or with one in what was held. */
  end(): void {
    if (this.stopString !== undefined) return
    const last = this.decoder.end()
    this.trail?.pushRest(last)
    this.splitter.push(last)
    this.splitter.end()
    if (this.stopString !== undefined || this.stops === undefined) return
    const rest = this.stops.end()
    if (rest !== "") this.show(rest, 0)
  }

  private text(piece: string): void {
    if (this.stopString !== undefined) return
    if (this.stops === undefined || this.count <= this.minTokens) return this.show(piece, 0)
    const { matched, text } = this.stops.push(piece)
    const kept = matched !== undefined && this.includeStop ? matched : ""
    if (text + kept !== "") this.show(text + kept, this.stops.heldLength() - kept.length)
    this.stopString = matched
  }

  /** `held` characters of what was decoded are not shown yet. */
  private show(text: string, held: number): void {
    this.emit(this.trail === undefined ? { _tag: "Text", text } : { _tag: "Text", text, logprobs: this.trail.take(text, held) })
  }
}
