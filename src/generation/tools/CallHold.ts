import type { ToolCallSink } from "./ToolCallParser.ts"

type Held = (sink: ToolCallSink) => void

/**
 * Holds calls back until it is sure that they are some: what breaks off or goes wrong is text, as it was written. A call whose source has grown
 * longer than `patience` characters goes on as it comes, and stays one whatever follows. For output that no grammar holds to its calls.
 */
export class CallHold implements ToolCallSink {
  readonly #sink: ToolCallSink
  readonly #patience: number
  /** The source before a call begins is its opener. */
  #opener = ""
  /** Of the calls that are held; undefined while there are none. */
  #source: string | undefined
  readonly #held: Array<Held> = []
  /** Goes on as it comes, up to the end of the calls. */
  #passing = false
  /** A call was given back, and what follows may be its end. */
  #returned = false

  constructor(sink: ToolCallSink, patience: number) {
    this.#sink = sink
    this.#patience = patience
  }

  text(text: string): void {
    this.close()
    this.#sink.text(text)
  }

  reasoning(text: string): void {
    this.#sink.reasoning?.(text)
  }

  source(text: string): void {
    if (this.#source === undefined) {
      if (this.#passing) return
      if (this.#returned && this.#opener !== "") this.#sink.text(this.#opener)
      this.#opener = text
      return
    }
    this.#source += text
    if (this.#source.length > this.#patience) this.#pass()
  }

  start(name: string, id?: string): void {
    if (this.#passing) return this.#sink.start(name, id)
    this.#returned = false
    this.#source ??= this.#opener
    this.#held.push((sink) => sink.start(name, id))
  }

  argument(text: string): void {
    if (this.#passing) this.#sink.argument(text)
    else this.#held.push((sink) => sink.argument(text))
  }

  end(whole: boolean, tentative = false): void {
    if (this.#passing) {
      this.#sink.end(whole)
      this.#passing = tentative
    } else if (!whole) this.#giveBack()
    else if (tentative) this.#held.push((sink) => sink.end(true))
    else {
      this.#release()
      this.#sink.end(true)
    }
  }

  settle(stands: boolean): void {
    this.#passing = false
    if (stands) this.#release()
    else this.#giveBack()
    this.#returned = false
  }

  /** What follows is no part of a call. */
  close(): void {
    if (this.#returned && this.#opener !== "") this.#sink.text(this.#opener)
    this.#returned = false
    this.#opener = ""
  }

  #pass(): void {
    this.#release()
    this.#passing = true
  }

  #release(): void {
    this.#source = undefined
    for (const held of this.#held.splice(0)) held(this.#sink)
  }

  #giveBack(): void {
    const source = this.#source
    this.#source = undefined
    this.#held.length = 0
    if (source === undefined) return
    this.#sink.text(source)
    this.#opener = ""
    this.#returned = true
  }
}
