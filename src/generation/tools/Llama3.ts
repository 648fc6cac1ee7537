import type { Tool } from "../../domain/Tool.ts"
import { type CallOutput, type CallReader, CallScanner, type Verdict } from "./CallScanner.ts"
import { JsonCall } from "./JsonCall.ts"
import { isSpace } from "./JsonScanner.ts"
import { PythonArguments } from "./PythonArguments.ts"
import { isNamePart, isNameStart } from "./Text.ts"
import type { ToolCallParser, ToolCallSink, ToolCallSyntax } from "./ToolCallParser.ts"

const pythonTag = "<|python_tag|>"

type Place = "start" | "json" | "betweenJson" | "item" | "name" | "arguments" | "betweenItems" | "over"

/** Calls without markers: JSON objects one after another, or a Python list of calls; after `<|python_tag|>` also `name.call(…)`. */
class BareReader implements CallReader {
  readonly #output: CallOutput
  readonly #offered: ReadonlySet<string>
  readonly #tagged: boolean
  #place: Place = "start"
  #call: JsonCall | undefined
  #name = ""
  #builtin = false
  #separated = false
  #arguments: PythonArguments | undefined

  constructor(output: CallOutput, offered: ReadonlySet<string>, tagged: boolean) {
    this.#output = output
    this.#offered = offered
    this.#tagged = tagged
  }

  get stands(): boolean {
    return this.#place === "over" || (this.#place === "betweenJson" && !this.#separated)
  }

  step(unit: string): Verdict {
    switch (this.#place) {
      case "json": {
        const verdict = this.#call?.step(unit) ?? "bad"
        if (verdict === "ended") return "bad"
        if (verdict !== "done") return verdict
        this.#place = "betweenJson"
        this.#separated = false
        return "more"
      }
      case "name":
        if (isNamePart(unit)) {
          this.#name += unit
          return "more"
        }
        return this.#beginArguments(unit)
      case "arguments":
        return this.#stepArguments(unit)
      default:
        return isSpace(unit) ? "more" : this.#between(unit)
    }
  }

  #between(unit: string): Verdict {
    switch (this.#place) {
      case "start":
        if (unit === "{") return this.#beginJson(unit)
        if (unit === "[") {
          this.#place = "item"
          return "more"
        }
        this.#builtin = true
        return this.#tagged ? this.#beginName(unit) : "bad"
      case "betweenJson":
        if (unit === "{") return this.#beginJson(unit)
        if (this.#separated || (unit !== ";" && unit !== ",")) return "bad"
        this.#separated = true
        return "more"
      case "item":
        return unit === "]" && this.#name !== "" ? this.#finish() : this.#beginName(unit)
      case "betweenItems":
        if (unit === "]") return this.#finish()
        this.#place = "item"
        return unit === "," ? "more" : "bad"
      default:
        return "bad"
    }
  }

  #beginJson(unit: string): Verdict {
    this.#call = new JsonCall(this.#output, { argumentKeys: ["parameters", "arguments"], offered: this.#offered, bare: true })
    this.#place = "json"
    return this.step(unit)
  }

  #beginName(unit: string): Verdict {
    this.#name = unit
    this.#place = "name"
    return isNameStart(unit) ? "more" : "bad"
  }

  #beginArguments(unit: string): Verdict {
    if (this.#builtin) {
      if (!this.#name.endsWith(".call")) return "bad"
      this.#name = this.#name.slice(0, -".call".length)
    } else if (!this.#offered.has(this.#name)) return "bad"
    this.#arguments = new PythonArguments((json) => this.#output.argument(json))
    this.#place = "arguments"
    return this.step(unit)
  }

  #stepArguments(unit: string): Verdict {
    const own = this.#arguments
    if (own === undefined || !own.step(unit)) return "bad"
    if (!this.#output.open && own.certain) this.#output.begin(this.#name)
    if (!own.done) return "more"
    this.#output.finish(true)
    if (this.#builtin) return this.#finish()
    this.#place = "betweenItems"
    return "more"
  }

  /** Only white space may follow. */
  #finish(): Verdict {
    this.#output.settle()
    this.#place = "over"
    return "more"
  }
}

const parser = (sink: ToolCallSink, tools: ReadonlyArray<Tool>): ToolCallParser => {
  const offered = new Set(tools.map((tool) => tool.name))
  return new CallScanner(sink, {
    first: (output) => new BareReader(output, offered, false),
    openers: new Map([[pythonTag, (output: CallOutput) => new BareReader(output, offered, true)]])
  })
}

/** Llama 3.x: nothing but JSON objects with the name of an offered tool and its parameters. What is said of the pythonic form holds here too. */
export const llama3Json: ToolCallSyntax = {
  name: "llama3-json",
  matches: (renderedCall) => /\{\s*"name":\s*"mbxtool",\s*"(?:parameters|arguments)":/.test(renderedCall),
  markers: [pythonTag],
  parser
}

/** Llama 3.2 and 4: a list of Python calls of offered tools. Both forms are read, since models of this family mix them. */
export const llama3Pythonic: ToolCallSyntax = {
  name: "llama3-pythonic",
  matches: (renderedCall) => /\[\s*mbxtool\(/.test(renderedCall),
  markers: [pythonTag],
  parser
}
