import type { TokenLogprobs } from "./Logprobs.ts"
import type { Usage } from "./Usage.ts"

/**
 * What a generation says, in order: any number of deltas, then one `Finish`. Failures travel in the error channel. Calls are numbered from 0;
 * a `ToolCall` comes before its `ToolArguments`, and the next call or text ends it.
 */
export type OutputEvent = OutputDelta | Finish

export type OutputDelta =
  /** `logprobs`, where they were asked for: of the tokens that begin in this text; tokens that show no text have none. */
  | { readonly _tag: "Text"; readonly text: string; readonly logprobs?: ReadonlyArray<TokenLogprobs> }
  | { readonly _tag: "Reasoning"; readonly text: string }
  | { readonly _tag: "ToolCall"; readonly index: number; readonly id: string; readonly name: string }
  /** A piece of the call's arguments as JSON text. */
  | { readonly _tag: "ToolArguments"; readonly index: number; readonly text: string }

export interface Finish {
  readonly _tag: "Finish"
  /** "tool_calls": the turn ended by itself and holds at least one call. */
  readonly reason: "stop" | "length" | "tool_calls"
  /** The stop string that ended the output, where one did. */
  readonly stopString?: string
  /** The stop token that ended the output, where one did and was no end of turn. */
  readonly stopToken?: number
  /** Where they were asked for: every token of the prompt and of the output, hidden ones and the stop token too. */
  readonly tokens?: { readonly prompt: ReadonlyArray<number>; readonly output: ReadonlyArray<number> }
  readonly usage: Usage
}

/** Two deltas as one, where they continue each other; undefined where they do not. */
export const joinDeltas = (left: OutputDelta, right: OutputDelta): OutputDelta | undefined => {
  if (left._tag === "ToolCall" || right._tag === "ToolCall" || left._tag !== right._tag) return undefined
  if (left._tag === "ToolArguments" && right._tag === "ToolArguments" && left.index !== right.index) return undefined
  const text = left.text + right.text
  if (left._tag !== "Text" || right._tag !== "Text" || (left.logprobs ?? right.logprobs) === undefined) return { ...left, text }
  return { _tag: "Text", text, logprobs: [...left.logprobs ?? [], ...right.logprobs ?? []] }
}
