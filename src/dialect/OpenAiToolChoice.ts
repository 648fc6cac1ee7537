import { Result } from "effect"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { ToolChoice } from "../domain/Tool.ts"
import { isRecord } from "./WireRequest.ts"

/** "none": the model is shown no tools. undefined: it calls what it likes. */
export type DecodedChoice = ToolChoice | "none" | undefined

type Refusal = InvalidRequest | UnsupportedFeature

const field = "tool_choice"

const invalid = (at: string, message: string) => Result.fail(new InvalidRequest({ message: `${at}: ${message}`, field: at }))

/** The name and namespace of a tool that a choice names, in the words of both APIs. */
const named = (choice: Readonly<Record<string, unknown>>): { readonly name: unknown; readonly namespace: unknown } => {
  const inner = choice["function"] ?? choice["custom"]
  return isRecord(inner) ? { name: inner["name"], namespace: undefined } : { name: choice["name"], namespace: choice["namespace"] }
}

export interface KnownTools {
  /** How many the model may call. */
  readonly count: number
  /** What the model knows a tool of the request as; undefined where there is none. */
  readonly find: (name: string, namespace: string | undefined) => string | undefined
}

/** `tool_choice` of Chat Completions and Responses. */
export const toolChoice = (choice: unknown, tools: KnownTools): Result.Result<DecodedChoice, Refusal> => {
  if (choice === undefined || choice === null || choice === "auto") return Result.succeed(undefined)
  if (choice === "none") return Result.succeed("none")
  if (choice === "required" || choice === "any") return required(tools)
  if (!isRecord(choice)) return invalid(field, "Expected auto, none, required, or an object that names a function")
  switch (choice["type"]) {
    case "auto":
      return Result.succeed(undefined)
    case "none":
      return Result.succeed("none")
    case "required":
    case "any":
      return required(tools)
    case "allowed_tools":
      return allowedTools(choice, tools)
    case "function":
    case "custom":
      return Result.map(nameOf(choice, field, tools), (name) => ({ required: true, names: [name], once: true, field }))
    default:
      return Result.fail(
        new UnsupportedFeature({
          message: `${field}.type: only functions, custom tools and allowed_tools can be chosen`,
          field: `${field}.type`
        })
      )
  }
}

const required = (tools: KnownTools): Result.Result<DecodedChoice, Refusal> =>
  tools.count === 0 ? invalid(field, "there are no tools to call") : Result.succeed({ required: true, field })

const nameOf = (choice: Readonly<Record<string, unknown>>, at: string, tools: KnownTools): Result.Result<string, InvalidRequest> => {
  const { name, namespace } = named(choice)
  if (typeof name !== "string") return invalid(at, "Expected the name of a tool")
  const known = tools.find(name.toWellFormed(), typeof namespace === "string" ? namespace : undefined)
  return known === undefined ? invalid(at, "there is no tool of this name in tools") : Result.succeed(known)
}

const allowedTools = (choice: Readonly<Record<string, unknown>>, tools: KnownTools): Result.Result<DecodedChoice, Refusal> =>
  Result.gen(function*() {
    const inner = choice["allowed_tools"]
    const own = isRecord(inner) ? inner : choice
    const at = own === choice ? field : `${field}.allowed_tools`
    const { mode = "auto", tools: listed } = own
    if (mode !== "auto" && mode !== "required") return yield* invalid(`${at}.mode`, "Expected auto or required")
    if (!Array.isArray(listed) || listed.length === 0) return yield* invalid(`${at}.tools`, "Expected at least one tool")
    const names: Array<string> = []
    for (const [index, tool] of listed.entries()) {
      const place = `${at}.tools.${index}`
      if (!isRecord(tool)) return yield* invalid(place, "Expected an object")
      // Tools of other kinds are not shown to the model, so that it cannot call them either.
      if (tool["type"] === "function" || tool["type"] === "custom") names.push(yield* nameOf(tool, place, tools))
    }
    if (names.length === 0) return yield* invalid(`${at}.tools`, "the model is shown none of these tools")
    return { required: mode === "required", names, field }
  })
