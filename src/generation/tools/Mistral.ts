import { type CallOutput, type CallReader, CallScanner, type ReaderMaker, type Verdict } from "./CallScanner.ts"
import { JsonCall, JsonObject } from "./JsonCall.ts"
import { isSpace } from "./JsonScanner.ts"
import { isNamePart, Literal, ToolName } from "./Text.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

export const opener = "[TOOL_CALLS]"
export const argumentsMarker = "[ARGS]"
const idMarker = "[CALL_ID]"

/** White space and a JSON array of calls. */
class ArrayReader implements CallReader {
  readonly stands = false
  readonly #output: CallOutput
  #call: JsonCall | undefined
  #place: "array" | "item" | "call" | "next" = "array"

  constructor(output: CallOutput) {
    this.#output = output
  }

  step(unit: string): Verdict {
    if (this.#place === "call" && this.#call !== undefined) {
      const verdict = this.#call.step(unit)
      if (verdict === "ended") return "bad"
      if (verdict !== "done") return verdict
      this.#place = "next"
      return "more"
    }
    if (isSpace(unit)) return "more"
    switch (this.#place) {
      case "array":
        this.#place = "item"
        return unit === "[" ? "more" : "bad"
      case "item":
        if (unit !== "{") return "bad"
        this.#call = new JsonCall(this.#output, { argumentKeys: ["arguments", "parameters"] })
        this.#place = "call"
        return this.step(unit)
      default:
        if (unit === "]") return "done"
        this.#place = "item"
        return unit === "," ? "more" : "bad"
    }
  }
}

/** White space, a name, perhaps an id, `[ARGS]`, white space, a JSON object. */
class ArgumentsReader implements CallReader {
  readonly #output: CallOutput
  readonly #object: JsonObject
  readonly #marker = new Literal(argumentsMarker, idMarker)
  readonly #name = new ToolName()
  #place: "name" | "marker" | "id" | "gap" | "object" = "name"
  #id = ""

  constructor(output: CallOutput) {
    this.#output = output
    this.#object = new JsonObject(output)
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "name": {
        const read = this.#name.step(unit)
        if (read !== "end") return read ? "more" : "bad"
        this.#place = "marker"
        return this.step(unit)
      }
      case "id":
        if (unit !== "[") {
          this.#id += unit
          return isNamePart(unit) ? "more" : "bad"
        }
        this.#place = "marker"
        return this.step(unit)
      case "marker": {
        const read = this.#marker.step(unit)
        if (read === argumentsMarker) this.#place = "gap"
        if (read === idMarker && this.#id !== "") return "bad"
        if (read === idMarker) this.#place = "id"
        return read === false ? "bad" : "more"
      }
      case "gap":
        if (isSpace(unit)) return "more"
        this.#place = "object"
        return this.step(unit)
      case "object":
        if (!this.#object.step(unit)) return "bad"
        if (!this.#output.open && this.#object.certain) this.#output.begin(this.#name.text, this.#id === "" ? undefined : this.#id)
        if (!this.#object.done) return "more"
        this.#output.finish(true)
        return "done"
    }
  }
}

export const readArray: ReaderMaker = (output) => new ArrayReader(output)
export const readArguments: ReaderMaker = (output) => new ArgumentsReader(output)

/** Mistral up to Nemo: `[TOOL_CALLS]` and a JSON array of objects with a name, arguments and perhaps an id. */
export const mistralArray: ToolCallSyntax = {
  name: "mistral-array",
  matches: (renderedCall) => /\[TOOL_CALLS\]\s*\[\s*\{/.test(renderedCall),
  markers: [opener],
  parser: (sink) => new CallScanner(sink, { openers: new Map([[opener, readArray]]) })
}

/** Mistral from Small 3.2 on: `[TOOL_CALLS]`, the name, perhaps `[CALL_ID]` and an id, `[ARGS]` and a JSON object. */
export const mistralArguments: ToolCallSyntax = {
  name: "mistral-args",
  matches: (renderedCall) => /\[TOOL_CALLS\]\s*[\w.-]+(\[CALL_ID\][\w.-]+)?\[ARGS\]/.test(renderedCall),
  markers: [opener, idMarker, argumentsMarker],
  parser: (sink) => new CallScanner(sink, { openers: new Map([[opener, readArguments]]) })
}
