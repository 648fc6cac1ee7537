import { type CallOutput, type CallReader, CallScanner, type Verdict } from "./CallScanner.ts"
import { JsonObject } from "./JsonCall.ts"
import { isSpace } from "./JsonScanner.ts"
import { isNamePart, isNameStart, Literal, ToolName } from "./Text.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

// U+FF5C and U+2581 stand where other models have a bar and an underscore.
export const callsBegin = "<｜tool▁calls▁begin｜>"
export const callsEnd = "<｜tool▁calls▁end｜>"
export const callBegin = "<｜tool▁call▁begin｜>"
export const callEnd = "<｜tool▁call▁end｜>"
export const separator = "<｜tool▁sep｜>"

type Place = "between" | "head" | "headEnd" | "separator" | "form" | "name" | "fence" | "language" | "object" | "after" | "closer"

/**
 * One call after another. V3.1: name, separator, JSON object. R1: "function", separator, name, line break, the object in a fenced code block.
 * The markers around all calls may be missing.
 */
class DeepSeekReader implements CallReader {
  readonly #output: CallOutput
  readonly #between = new Literal(callBegin, callsEnd)
  readonly #separator = new Literal(separator)
  readonly #closer = new Literal(callEnd)
  readonly #fence = new Literal("```")
  readonly #language = new Literal("json\n", "\n")
  #head = new ToolName()
  #object: JsonObject
  #fenced = false
  #name = ""
  #place: Place

  constructor(output: CallOutput, place: "between" | "head") {
    this.#output = output
    this.#object = new JsonObject(output)
    this.#place = place
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "between": {
        if (this.#between.empty && isSpace(unit)) return "more"
        const read = this.#between.step(unit)
        if (read === callsEnd) return "done"
        if (read === callBegin) this.#beginCall()
        return read === false ? "bad" : "more"
      }
      case "head": {
        const read = this.#head.step(unit)
        if (read !== "end") return read ? "more" : "bad"
        this.#name = this.#head.text
        return this.#goOn("headEnd", unit)
      }
      case "headEnd":
        return isSpace(unit) ? "more" : this.#goOn("separator", unit)
      case "separator":
        return this.#literal(this.#separator, "form", unit)
      case "form":
        if (isSpace(unit)) return "more"
        if (unit === "{") return this.#goOn("object", unit)
        if (this.#name !== "function" || !isNameStart(unit)) return "bad"
        this.#fenced = true
        this.#name = unit
        this.#place = "name"
        return "more"
      case "name":
        if (unit === "\n") this.#place = "fence"
        else if (isNamePart(unit)) this.#name += unit
        else return "bad"
        return "more"
      case "fence":
        return this.#literal(this.#fence, "language", unit)
      case "language":
        return this.#literal(this.#language, "object", unit)
      case "object":
        return this.#stepObject(unit)
      case "after":
        if (this.#fence.empty && isSpace(unit)) return "more"
        return this.#fenced ? this.#literal(this.#fence, "closer", unit) : this.#goOn("closer", unit)
      case "closer":
        if (this.#closer.empty && isSpace(unit)) return "more"
        return this.#endCall(unit)
    }
  }

  #beginCall(): void {
    this.#object = new JsonObject(this.#output)
    this.#fenced = false
    this.#head = new ToolName()
    this.#place = "head"
  }

  #stepObject(unit: string): Verdict {
    if (this.#object.empty && isSpace(unit)) return "more"
    if (!this.#object.step(unit)) return "bad"
    if (!this.#output.open && this.#object.certain) this.#output.begin(this.#name)
    if (this.#object.done) {
      this.#output.finish(true)
      this.#place = "after"
    }
    return "more"
  }

  #endCall(unit: string): Verdict {
    const read = this.#literal(this.#closer, "between", unit)
    if (this.#place === "between") this.#output.settle()
    return read
  }

  #goOn(place: Place, unit: string): Verdict {
    this.#place = place
    return this.step(unit)
  }

  #literal(literal: Literal, next: Place, unit: string): Verdict {
    const read = literal.step(unit)
    if (typeof read === "string") this.#place = next
    return read === false ? "bad" : "more"
  }
}

/** DeepSeek R1 and V3.1. */
export const deepSeek: ToolCallSyntax = {
  name: "deepseek",
  matches: (renderedCall) => renderedCall.includes(callBegin),
  markers: [callsBegin, callsEnd, callBegin, callEnd, separator],
  parser: (sink) =>
    new CallScanner(sink, {
      openers: new Map([
        [callsBegin, (output: CallOutput) => new DeepSeekReader(output, "between")],
        [callBegin, (output: CallOutput) => new DeepSeekReader(output, "head")]
      ]),
      closer: callEnd
    })
}
