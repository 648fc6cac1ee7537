import type { TokenLogprobs } from "./Logprobs.ts"
import type { OutputDelta } from "./OutputEvent.ts"

/** A finished answer, its deltas put together. */
export interface Output {
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: ReadonlyArray<ToolCall>
  /** Of the text's tokens, where they were asked for. */
  readonly logprobs?: ReadonlyArray<TokenLogprobs>
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

/** Puts the deltas of one answer together. */
export class OutputCollector implements Output {
  text = ""
  reasoning = ""
  logprobs?: Array<TokenLogprobs>
  readonly toolCalls: Array<{ id: string; name: string; arguments: string }> = []

  add(delta: OutputDelta): void {
    switch (delta._tag) {
      case "Text":
        this.text += delta.text
        if (delta.logprobs !== undefined) (this.logprobs ??= []).push(...delta.logprobs)
        break
      case "Reasoning":
        this.reasoning += delta.text
        break
      case "ToolCall":
        this.toolCalls.push({ id: delta.id, name: delta.name, arguments: "" })
        break
      case "ToolArguments": {
        const call = this.toolCalls[delta.index]
        if (call !== undefined) call.arguments += delta.text
      }
    }
  }

  clear(): void {
    this.text = ""
    this.reasoning = ""
    delete this.logprobs
    this.toolCalls.length = 0
  }
}
