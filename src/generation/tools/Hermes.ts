import { type CallOutput, type CallReader, CallScanner, type ReaderMaker, type Verdict } from "./CallScanner.ts"
import { JsonCall } from "./JsonCall.ts"
import { isSpace } from "./JsonScanner.ts"
import { Literal } from "./Text.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

export const opener = "<tool_call>"
export const closer = "</tool_call>"

/** White space, a JSON object, white space, `</tool_call>`. */
class HermesReader implements CallReader {
  readonly #call: JsonCall
  readonly #closer = new Literal(closer)
  #place: "before" | "call" | "after" = "before"

  constructor(output: CallOutput) {
    this.#call = new JsonCall(output, { argumentKeys: ["arguments", "parameters"] })
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "before":
        if (isSpace(unit)) return "more"
        this.#place = "call"
        return this.step(unit)
      case "call": {
        const verdict = this.#call.step(unit)
        if (verdict === "bad" || verdict === "more") return verdict
        this.#place = "after"
        return verdict === "done" ? "more" : this.step(unit)
      }
      case "after": {
        if (this.#closer.empty && isSpace(unit)) return "more"
        const read = this.#closer.step(unit)
        return read === false ? "bad" : read === true ? "more" : "done"
      }
    }
  }
}

export const readHermes: ReaderMaker = (output) => new HermesReader(output)

/**
 * Hermes and its heirs, Qwen2.5 and Qwen3: `<tool_call>` white space, a JSON object, white space, `</tool_call>`, the closing tag optional at
 * the end and before another call. The object has "name" and perhaps "arguments": an object, or a string that holds one.
 */
export const hermes: ToolCallSyntax = {
  name: "hermes",
  matches: (renderedCall) => /<tool_call>\s*\{\s*"name":/.test(renderedCall),
  markers: [opener, closer],
  parser: (sink) => new CallScanner(sink, { openers: new Map([[opener, readHermes]]), closer })
}
