import type { OutputEvent } from "../domain/OutputEvent.ts"
import type { StreamDecoder } from "../tokenizer/Tokenizer.ts"
import { ReasoningSplitter } from "./ReasoningSplitter.ts"
import * as StopStrings from "./StopStrings.ts"

export interface OutputPipelineOptions {
  readonly decoder: StreamDecoder
  readonly startsInReasoning: boolean
  readonly stopStrings: ReadonlyArray<string>
  readonly emit: (event: OutputEvent) => void
}

/** Token ids → text → reasoning and answer → the answer up to its first stop string. One per attempt; nothing here waits. */
export class OutputPipeline {
  private readonly decoder: StreamDecoder
  private readonly splitter: ReasoningSplitter
  private readonly stops: ReturnType<typeof StopStrings.make> | undefined
  private readonly emit: (event: OutputEvent) => void
  /** The stop string that ended the output. */
  stopString: string | undefined

  constructor(options: OutputPipelineOptions) {
    this.decoder = options.decoder
    this.stops = options.stopStrings.length === 0 ? undefined : StopStrings.make(options.stopStrings)
    this.emit = options.emit
    this.splitter = new ReasoningSplitter(
      options.startsInReasoning,
      (text) => this.text(text),
      (text) => this.emit({ _tag: "Reasoning", text })
    )
  }

  /** True when the output has ended at a stop string; later tokens are dropped. */
  push(token: number): boolean {
    if (this.stopString === undefined) this.splitter.push(this.decoder.push(token))
    return this.stopString !== undefined
  }

  /** Hands out what was held back: the output ended without a stop string, or with one in what was held. */
  end(): void {
    if (this.stopString !== undefined) return
    this.splitter.push(this.decoder.end())
    this.splitter.end()
    if (this.stopString !== undefined || this.stops === undefined) return
    const rest = this.stops.end()
    if (rest !== "") this.emit({ _tag: "Text", text: rest })
  }

  private text(piece: string): void {
    if (this.stopString !== undefined) return
    if (this.stops === undefined) return this.emit({ _tag: "Text", text: piece })
    const { matched, text } = this.stops.push(piece)
    if (text !== "") this.emit({ _tag: "Text", text })
    this.stopString = matched
  }
}
