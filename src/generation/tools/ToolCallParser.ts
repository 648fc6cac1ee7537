import type { Tool } from "../../domain/Tool.ts"

/**
 * What a parser makes of the output, in order. Everything that is not part of a call is text, as it was written: also what turns out to be no
 * call after all. `start` comes before the call's `argument`s, `end` after them, and nothing else between.
 */
export interface ToolCallSink {
  readonly text: (text: string) => void
  /** `id`: where the model wrote one before the call's arguments. */
  readonly start: (name: string, id?: string) => void
  /** A piece of the call's arguments as JSON text. */
  readonly argument: (text: string) => void
  /**
   * `whole`: the call is complete. False where the output broke off in the middle of it, or went on as no call does. `tentative`: what follows
   * decides whether it is a call at all, and `settle` says so.
   */
  readonly end: (whole: boolean, tentative?: boolean) => void
  /** Whether the calls since the last time stand, where they do so together; no markup that follows is a part of them. */
  readonly settle?: (stands: boolean) => void
  /** Of syntaxes that mark reasoning themselves. */
  readonly reasoning?: (text: string) => void
  /** What the model wrote that became calls, markup and all; together with the texts, in this order, it is the whole output. */
  readonly source?: (text: string) => void
}

/**
 * Finds tool calls in output as it streams in. What it says does not depend on how the output was cut into pieces, and its time is linear in
 * the output. Once a call has started it stays one; its arguments are handed on as the model writes them.
 */
export interface ToolCallParser {
  readonly push: (text: string) => void
  /** The output is over: hands out what was held back. */
  readonly end: () => void
  /** The output is inside reasoning, in syntaxes that mark it themselves. */
  readonly inReasoning?: boolean
  /** Characters that were looked at so far, some of them more than once: what the time goes into. */
  readonly work: number
}

/** One way of models to write tool calls. */
export interface ToolCallSyntax {
  readonly name: string
  /** Whether a chat template that renders an earlier call like this expects calls of this syntax. */
  readonly matches: (renderedCall: string) => boolean
  /** Texts of the syntax that are control tokens in some vocabularies; the parser has to see them. */
  readonly markers: ReadonlyArray<string>
  /** Reasoning is marked by the syntax, as channels do; no tags are looked for. */
  readonly marksReasoning?: boolean
  /** `tools`: those that the request offers. Syntaxes without markers take only their names, untyped ones the types of their parameters. */
  readonly parser: (sink: ToolCallSink, tools: ReadonlyArray<Tool>) => ToolCallParser
}
