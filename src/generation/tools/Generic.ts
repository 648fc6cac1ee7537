import { readPairs } from "./ArgPairs.ts"
import { type CallOutput, type CallReader, CallScanner, type ReaderMaker, type Verdict } from "./CallScanner.ts"
import { closer, opener, readHermes } from "./Hermes.ts"
import { isSpace } from "./JsonScanner.ts"
import { argumentsMarker, opener as mistralOpener, readArguments, readArray } from "./Mistral.ts"
import { functionTag, readFunction } from "./QwenXml.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

/** Chooses a reader by the first character that is not white space. */
class ChoosingReader implements CallReader {
  readonly #output: CallOutput
  readonly #choose: (unit: string) => ReaderMaker
  #reader: CallReader | undefined

  constructor(output: CallOutput, choose: (unit: string) => ReaderMaker) {
    this.#output = output
    this.#choose = choose
  }

  step(unit: string): Verdict {
    if (this.#reader === undefined && isSpace(unit)) return "more"
    this.#reader ??= this.#choose(unit)(this.#output)
    return this.#reader.step(unit)
  }
}

/**
 * For models whose template shows no calls, or shows them in no way that is known: `<tool_call>` around JSON, tags or pairs, a function in tags
 * by itself, and `[TOOL_CALLS]`.
 */
export const generic: ToolCallSyntax = {
  name: "generic",
  matches: () => true,
  markers: [opener, closer, mistralOpener, argumentsMarker],
  parser: (sink, tools) =>
    new CallScanner(sink, {
      openers: new Map([
        [opener, (output: CallOutput) =>
          new ChoosingReader(output, (unit) =>
            unit === "{" ? readHermes : unit === "<" ? readFunction(tools, true) : readPairs(tools))],
        [functionTag, readFunction(tools, false)],
        [mistralOpener, (output: CallOutput) =>
          new ChoosingReader(output, (unit) => unit === "[" ? readArray : readArguments)]
      ]),
      closer
    })
}
