import type { Tool } from "../../domain/Tool.ts"
import { type ToolParameters, toolParameters } from "../../domain/ToolParameters.ts"
import type { CallOutput } from "./CallScanner.ts"
import { MarkupValue, type MarkupValueOptions } from "./MarkupValue.ts"
import { jsonUnit } from "./Text.ts"

/**
 * The arguments of a call whose values are text between tags, as one JSON object. The call begins with its first argument. Strings are handed on
 * as they come, other values when they are whole.
 */
export class MarkupArguments {
  readonly #output: CallOutput
  readonly #name: string
  readonly #types: ToolParameters
  readonly #tags: Omit<MarkupValueOptions, "onText">
  #key = ""
  #whole: string | undefined
  #any = false
  #value: MarkupValue | undefined

  constructor(output: CallOutput, name: string, tools: ReadonlyArray<Tool>, tags: Omit<MarkupValueOptions, "onText">) {
    this.#output = output
    this.#name = name
    this.#types = toolParameters(tools, name)
    this.#tags = tags
  }

  beginValue(key: string): void {
    const isText = this.#types.isText(key)
    this.#key = key
    this.#whole = isText ? undefined : ""
    this.#output.argument(`${this.#any ? ", " : "{"}${JSON.stringify(key)}: ${isText ? "\"" : ""}`)
    if (!this.#any) this.#output.begin(this.#name)
    this.#any = true
    this.#value = new MarkupValue({ ...this.#tags, onText: isText ? (text) => this.#addString(text) : (text) => this.#addWhole(text) })
  }

  /** Takes a character of the value: what follows it, once that is complete. */
  step(unit: string): string | undefined {
    const follower = this.#value?.step(unit)
    if (follower !== undefined) {
      this.#output.argument(this.#whole === undefined ? "\"" : this.#types.json(this.#key, this.#whole))
    }
    return follower
  }

  finish(): void {
    this.#output.argument(this.#any ? "}" : "{}")
    if (!this.#any) this.#output.begin(this.#name)
    this.#output.finish(true)
  }

  #addString(text: string): void {
    for (let i = 0; i < text.length; i++) this.#output.argument(jsonUnit(text.charAt(i)))
  }

  #addWhole(text: string): void {
    this.#whole += text
  }
}
