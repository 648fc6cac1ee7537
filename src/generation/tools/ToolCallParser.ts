/**
 * What a parser makes of the output, in order. Everything that is not part of a call is text, as it was written: also what turns out to be no
 * call after all. `start` comes before the call's `argument`s, `end` after them, and nothing else between.
 */
export interface ToolCallSink {
  readonly text: (text: string) => void
  readonly start: (name: string) => void
  /** A piece of the call's arguments as JSON text. */
  readonly argument: (text: string) => void
  /** The call is complete, or the output broke off in the middle of its arguments. */
  readonly end: () => void
}

/**
 * Finds tool calls in output as it streams in. What it says does not depend on how the output was cut into pieces, and its time is linear in
 * the output. Once a call has started it stays one; its arguments are handed on as the model writes them.
 */
export interface ToolCallParser {
  readonly push: (text: string) => void
  /** The output is over: hands out what was held back. */
  readonly end: () => void
}

/** One way of models to write tool calls. */
export interface ToolCallSyntax {
  readonly name: string
  /** Whether a chat template that renders an earlier call like this expects calls of this syntax. */
  readonly matches: (renderedCall: string) => boolean
  readonly parser: (sink: ToolCallSink) => ToolCallParser
}
