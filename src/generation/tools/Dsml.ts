import type { Tool } from "../../domain/Tool.ts"
import { type CallOutput, type CallReader, CallScanner, type Verdict } from "./CallScanner.ts"
import { isSpace } from "./JsonScanner.ts"
import { MarkupArguments } from "./MarkupArguments.ts"
import { Literal } from "./Text.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

/** Stands in every tag; U+FF5C where other models have a bar. */
export const dsmlToken = "｜DSML｜"

const wrappers = ["function_calls", "tool_calls"]
const invokeTag = `<${dsmlToken}invoke name="`
const invokeEnd = `</${dsmlToken}invoke>`
const parameterTag = `<${dsmlToken}parameter name="`
const parameterEnd = `</${dsmlToken}parameter>`

const tags = { closer: parameterEnd, followers: [parameterTag, invokeEnd], lines: false }

/** What a parameter's tag says of its value. */
const marks: ReadonlyMap<string, "text" | "json" | undefined> = new Map([
  [" string=\"true\">", "text"],
  [" string=\"false\">", "json"],
  [">", undefined]
])

type Place = "between" | "name" | "nameEnd" | "next" | "key" | "mark" | "value"

/** One invocation after another, up to the closing tag of the wrapper. */
class DsmlReader implements CallReader {
  readonly #output: CallOutput
  readonly #tools: ReadonlyArray<Tool>
  /** Absent outside of a wrapper, where only the names of offered tools are calls, and only one at a time. */
  readonly #wrapperEnd: string | undefined
  readonly #between: Literal
  readonly #nameEnd = new Literal(">")
  readonly #next = new Literal(parameterTag, invokeEnd)
  readonly #mark = new Literal(...marks.keys())
  #place: Place
  #name = ""
  #key = ""
  #arguments: MarkupArguments | undefined

  constructor(output: CallOutput, tools: ReadonlyArray<Tool>, wrapper?: string) {
    this.#output = output
    this.#tools = tools
    this.#wrapperEnd = wrapper === undefined ? undefined : `</${dsmlToken}${wrapper}>`
    this.#between = new Literal(invokeTag, ...(this.#wrapperEnd === undefined ? [] : [this.#wrapperEnd]))
    this.#place = wrapper === undefined ? "name" : "between"
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "between":
        return this.#literal(this.#between, unit, true, (tag) => {
          if (tag === this.#wrapperEnd) return "done"
          this.#name = ""
          return this.#goOn("name")
        })
      case "name":
        if (unit === "\n") return "bad"
        if (unit !== "\"") this.#name += unit
        else return this.#isCallable ? this.#goOn("nameEnd") : "bad"
        return "more"
      case "nameEnd":
        return this.#literal(this.#nameEnd, unit, false, () => {
          this.#arguments = new MarkupArguments(this.#output, this.#name, this.#tools, tags)
          return this.#goOn("next")
        })
      case "next":
        return this.#literal(this.#next, unit, true, (tag) => this.#follow(tag))
      case "key":
        if (unit === "\n") return "bad"
        if (unit !== "\"") this.#key += unit
        else return this.#key === "" ? "bad" : this.#goOn("mark")
        return "more"
      case "mark":
        return this.#literal(this.#mark, unit, false, (mark) => {
          this.#arguments?.beginValue(this.#key, marks.get(mark))
          return this.#goOn("value")
        })
      case "value": {
        const follower = this.#arguments?.step(unit)
        return follower === undefined ? "more" : this.#follow(follower)
      }
    }
  }

  get #isCallable(): boolean {
    return this.#name !== "" && (this.#wrapperEnd !== undefined || this.#tools.some(({ name }) => name === this.#name))
  }

  #goOn(place: Place): Verdict {
    this.#place = place
    return "more"
  }

  #literal(literal: Literal, unit: string, spaced: boolean, then: (text: string) => Verdict): Verdict {
    if (spaced && literal.empty && isSpace(unit)) return "more"
    const read = literal.step(unit)
    return typeof read === "string" ? then(read) : read ? "more" : "bad"
  }

  #follow(tag: string): Verdict {
    if (tag === parameterTag) {
      this.#key = ""
      return this.#goOn("key")
    }
    this.#arguments?.finish()
    return this.#wrapperEnd === undefined ? "done" : this.#goOn("between")
  }
}

/**
 * DeepSeek V3.2 and, with another wrapper, V4: invocations with parameters between tags. Each parameter says whether it is a string, which stands
 * there as it is, or JSON.
 */
export const deepSeekDsml: ToolCallSyntax = {
  name: "deepseek-dsml",
  matches: (renderedCall) => renderedCall.includes(invokeTag),
  markers: [dsmlToken],
  parser: (sink, tools) =>
    new CallScanner(sink, {
      openers: new Map([
        ...wrappers.map((wrapper) => [`<${dsmlToken}${wrapper}>`, (output: CallOutput) => new DsmlReader(output, tools, wrapper)] as const),
        [invokeTag, (output: CallOutput) => new DsmlReader(output, tools)] as const
      ]),
      closer: invokeEnd
    })
}
