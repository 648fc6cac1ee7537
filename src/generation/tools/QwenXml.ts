import type { Tool } from "../../domain/Tool.ts"
import { type CallOutput, type CallReader, CallScanner, type ReaderMaker, type Verdict } from "./CallScanner.ts"
import { isSpace } from "./JsonScanner.ts"
import { MarkupArguments } from "./MarkupArguments.ts"
import { Literal } from "./Text.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

const opener = "<tool_call>"
const closer = "</tool_call>"
export const functionTag = "<function="
const functionEnd = "</function>"
const parameterTag = "<parameter="
const parameterEnd = "</parameter>"

const tags = { closer: parameterEnd, followers: [parameterTag, functionEnd], lines: true }

type Place = "function" | "name" | "next" | "key" | "value" | "after"

/** A function with its parameters, and the closing tag of the wrapper. */
class FunctionReader implements CallReader {
  readonly #output: CallOutput
  readonly #tools: ReadonlyArray<Tool>
  /** Without the wrapper, only the names of offered tools are calls. */
  readonly #wrapped: boolean
  readonly #function = new Literal(functionTag)
  readonly #next = new Literal(parameterTag, functionEnd)
  readonly #closer = new Literal(closer)
  #place: Place
  #name = ""
  #key = ""
  #arguments: MarkupArguments | undefined

  constructor(output: CallOutput, tools: ReadonlyArray<Tool>, wrapped: boolean) {
    this.#output = output
    this.#tools = tools
    this.#wrapped = wrapped
    this.#place = wrapped ? "function" : "name"
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "function": {
        if (this.#function.empty && isSpace(unit)) return "more"
        const read = this.#function.step(unit)
        if (typeof read === "string") this.#place = "name"
        return read === false ? "bad" : "more"
      }
      case "name":
        if (isSpace(unit)) return "bad"
        if (unit === ">") return this.#endName()
        this.#name += unit
        return "more"
      case "next": {
        if (this.#next.empty && isSpace(unit)) return "more"
        const read = this.#next.step(unit)
        if (typeof read === "string") this.#follow(read)
        return read === false ? "bad" : "more"
      }
      case "key":
        if (unit === "\n") return "bad"
        if (unit === ">") {
          if (this.#key === "") return "bad"
          this.#place = "value"
          this.#arguments?.beginValue(this.#key)
        } else this.#key += unit
        return "more"
      case "value": {
        const follower = this.#arguments?.step(unit)
        if (follower !== undefined) this.#follow(follower)
        return "more"
      }
      case "after": {
        if (this.#closer.empty && isSpace(unit)) return "more"
        const read = this.#closer.step(unit)
        return read === false ? "bad" : read === true ? "more" : "done"
      }
    }
  }

  #endName(): Verdict {
    if (this.#name === "" || !(this.#wrapped || this.#tools.some((tool) => tool.name === this.#name))) return "bad"
    this.#arguments = new MarkupArguments(this.#output, this.#name, this.#tools, tags)
    this.#place = "next"
    return "more"
  }

  #follow(tag: string): void {
    this.#key = ""
    this.#place = tag === parameterTag ? "key" : "after"
    if (tag === functionEnd) this.#arguments?.finish()
  }
}

export const readFunction = (tools: ReadonlyArray<Tool>, wrapped: boolean): ReaderMaker => (output) =>
  new FunctionReader(output, tools, wrapped)

/** Qwen3-Coder and Qwen3.5: `<function=name>` with `<parameter=key>` text `</parameter>` inside, in `<tool_call>`, which models forget at times. */
export const qwenXml: ToolCallSyntax = {
  name: "qwen-xml",
  matches: (renderedCall) => renderedCall.includes(functionTag),
  markers: [opener, closer],
  parser: (sink, tools) =>
    new CallScanner(sink, { openers: new Map([[opener, readFunction(tools, true)], [functionTag, readFunction(tools, false)]]), closer })
}
