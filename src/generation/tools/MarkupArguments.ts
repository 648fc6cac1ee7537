import type { Tool } from "../../domain/Tool.ts"
import { type ToolParameters, toolParameters, type Types } from "../../domain/ToolParameters.ts"
import type { CallOutput } from "./CallScanner.ts"
import { MarkupValue, type MarkupValueOptions } from "./MarkupValue.ts"
import { jsonUnit } from "./Text.ts"
import { TypedValue } from "./TypedValue.ts"

const anyButText: Types = new Set()

/**
 * The arguments of a call whose values are text between tags, as one JSON object. The call begins with its first argument. Strings, objects and
 * arrays are handed on as they come, other values when they are whole.
 */
export class MarkupArguments {
  readonly #output: CallOutput
  readonly #name: string
  readonly #types: ToolParameters
  readonly #tags: Omit<MarkupValueOptions, "onText">
  /** Absent where the value is a string. */
  #typed: TypedValue | undefined
  #any = false
  #whole = true
  #value: MarkupValue | undefined

  constructor(output: CallOutput, name: string, tools: ReadonlyArray<Tool>, tags: Omit<MarkupValueOptions, "onText">) {
    this.#output = output
    this.#name = name
    this.#types = toolParameters(tools, name)
    this.#tags = tags
  }

  /** `marked`: what the call itself says of the value; absent: the tool's parameters say it. */
  beginValue(key: string, marked?: "text" | "json"): void {
    const isText = marked === undefined ? this.#types.isText(key) : marked === "text"
    this.#output.argument(`${this.#any ? ", " : "{"}${JSON.stringify(key)}: ${isText ? "\"" : ""}`)
    if (!this.#any) this.#output.begin(this.#name)
    this.#any = true
    const typed = isText
      ? undefined
      : new TypedValue(marked === "json" ? anyButText : this.#types.types(key), (json) => this.#output.argument(json))
    this.#typed = typed
    this.#value = new MarkupValue({
      ...this.#tags,
      onText: typed === undefined ? (text) => this.#addString(text) : (text) => typed.add(text)
    })
  }

  /** Takes a character of the value: what follows it, once that is complete. */
  step(unit: string): string | undefined {
    const follower = this.#value?.step(unit)
    if (follower === undefined) return undefined
    if (this.#typed === undefined) this.#output.argument("\"")
    else if (!this.#typed.finish()) this.#whole = false
    return follower
  }

  finish(): void {
    this.#output.argument(this.#any ? "}" : "{}")
    if (!this.#any) this.#output.begin(this.#name)
    this.#output.finish(this.#whole)
  }

  #addString(text: string): void {
    for (let i = 0; i < text.length; i++) this.#output.argument(jsonUnit(text.charAt(i)))
  }
}
