import type { Tool } from "../../domain/Tool.ts"
import { type CallOutput, type CallReader, CallScanner, type ReaderMaker, type Verdict } from "./CallScanner.ts"
import { isSpace } from "./JsonScanner.ts"
import { MarkupArguments } from "./MarkupArguments.ts"
import { Literal, ToolName } from "./Text.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

const opener = "<tool_call>"
const closer = "</tool_call>"
const keyTag = "<arg_key>"
const keyEnd = "</arg_key>"
const valueTag = "<arg_value>"
const valueEnd = "</arg_value>"

const tags = { closer: valueEnd, followers: [keyTag, closer], lines: false }

type Place = "name" | "next" | "key" | "keyEnd" | "valueTag" | "value"

/** A name, pairs of keys and values, `</tool_call>`. */
class PairsReader implements CallReader {
  readonly #output: CallOutput
  readonly #tools: ReadonlyArray<Tool>
  readonly #next = new Literal(keyTag, closer)
  readonly #keyEnd = new Literal(keyEnd)
  readonly #valueTag = new Literal(valueTag)
  readonly #name = new ToolName()
  #place: Place = "name"
  #key = ""
  #arguments: MarkupArguments | undefined

  constructor(output: CallOutput, tools: ReadonlyArray<Tool>) {
    this.#output = output
    this.#tools = tools
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "name": {
        const read = this.#name.step(unit)
        if (read !== "end") return read ? "more" : "bad"
        this.#arguments = new MarkupArguments(this.#output, this.#name.text, this.#tools, tags)
        this.#place = "next"
        return this.step(unit)
      }
      case "next": {
        if (this.#next.empty && isSpace(unit)) return "more"
        const read = this.#next.step(unit)
        if (typeof read === "string") return this.#follow(read)
        return read ? "more" : "bad"
      }
      case "key":
        if (unit !== "<") {
          this.#key += unit
          return "more"
        }
        this.#place = "keyEnd"
        return this.step(unit)
      case "keyEnd": {
        const read = this.#keyEnd.step(unit)
        if (typeof read === "string") this.#place = "valueTag"
        return read === false ? "bad" : "more"
      }
      case "valueTag": {
        if (this.#valueTag.empty && isSpace(unit)) return "more"
        const read = this.#valueTag.step(unit)
        if (typeof read === "string") {
          this.#arguments?.beginValue(this.#key.trim())
          this.#place = "value"
        }
        return read === false ? "bad" : "more"
      }
      case "value": {
        const follower = this.#arguments?.step(unit)
        return follower === undefined ? "more" : this.#follow(follower)
      }
    }
  }

  #follow(tag: string): Verdict {
    if (tag === closer) {
      this.#arguments?.finish()
      return "done"
    }
    this.#key = ""
    this.#place = "key"
    return "more"
  }
}

export const readPairs = (tools: ReadonlyArray<Tool>): ReaderMaker => (output) => new PairsReader(output, tools)

/** Laguna and GLM-4.x: `<tool_call>`, the name, `<arg_key>` and `<arg_value>` in turn, `</tool_call>`. */
export const argPairs: ToolCallSyntax = {
  name: "arg-pairs",
  matches: (renderedCall) => renderedCall.includes(keyTag),
  markers: [opener, closer, keyTag, keyEnd, valueTag, valueEnd],
  parser: (sink, tools) => new CallScanner(sink, { openers: new Map([[opener, readPairs(tools)]]), closer })
}
