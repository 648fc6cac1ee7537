import { Result } from "effect"
import type { ChatCompletionRequest } from "../../schema/openai/Chat.ts"
import { InvalidRequest, type UnsupportedFeature } from "../domain/Errors.ts"
import type { Tool, ToolChoice } from "../domain/Tool.ts"
import { type DecodedChoice, toolChoice } from "./OpenAiToolChoice.ts"

export interface DecodedTools {
  /** Empty where the model may call none. */
  readonly tools: ReadonlyArray<Tool>
  readonly choice: ToolChoice | undefined
  /** The request has `functions`: the answer has one call at most, in their form. */
  readonly asFunctions: boolean
  /** Paths of the tools that this server knows nothing of. */
  readonly ignored: ReadonlyArray<string>
}

type WireTool = NonNullable<ChatCompletionRequest["tools"]>[number]

const isFunction = (tool: WireTool): boolean =>
  tool.type === "function" || (tool.type === undefined && (tool.function ?? tool.name) !== undefined)

const functionTool = (wire: WireTool, field: string): Result.Result<Tool, InvalidRequest | UnsupportedFeature> => {
  const own = wire.function ?? wire
  const path = wire.function === undefined ? field : `${field}.function`
  const { description, name, parameters, strict } = own
  if (name === undefined || name === "") {
    return Result.fail(new InvalidRequest({ message: `${path}.name: Expected a non-empty string`, field: `${path}.name` }))
  }
  return Result.succeed({
    name: name.toWellFormed(),
    ...(description === undefined || description === null ? {} : { description: description.toWellFormed() }),
    ...(parameters === undefined || parameters === null ? {} : { parameters }),
    ...(strict === true ? { strict, field: `${path}.parameters` } : {})
  })
}

/** `function_call` of a request. */
const functionChoice = (
  choice: ChatCompletionRequest["function_call"],
  tools: ReadonlyArray<Tool>
): Result.Result<DecodedChoice, InvalidRequest> => {
  const field = "function_call"
  if (choice === undefined || choice === "auto") return Result.succeed(undefined)
  if (choice === "none") return Result.succeed("none")
  const own = tools.find((tool) => tool.name === choice.name.toWellFormed())
  return own === undefined
    ? Result.fail(new InvalidRequest({ message: `${field}: there is no function of this name in functions`, field }))
    : Result.succeed({ required: true, names: [own.name], once: true, field })
}

/** The older form of tools; undefined where a request does not use it. */
const decodeFunctions = (
  { function_call: choice, functions = [], tools = [] }: ChatCompletionRequest
): Result.Result<DecodedTools | undefined, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    if (functions.length === 0 && (choice === undefined || typeof choice === "string")) return undefined
    if (tools.length > 0) {
      const field = "functions"
      return yield* Result.fail(new InvalidRequest({ message: `${field}: cannot be given together with tools`, field }))
    }
    const own: Array<Tool> = []
    for (const [index, wire] of functions.entries()) own.push(yield* functionTool(wire, `functions.${index}`))
    const chosen = yield* functionChoice(choice, own)
    return chosen === "none"
      ? { tools: [], choice: undefined, asFunctions: true, ignored: [] }
      : { tools: own, choice: chosen, asFunctions: true, ignored: [] }
  })

/** The tools that the model may call. `none` leaves them out of the prompt, so that the model has nothing to call. */
export const decodeTools = (body: ChatCompletionRequest): Result.Result<DecodedTools, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    const functions = yield* decodeFunctions(body)
    if (functions !== undefined) return functions
    const tools: Array<Tool> = []
    const ignored: Array<string> = []
    for (const [index, tool] of (body.tools ?? []).entries()) {
      const field = `tools.${index}`
      if (isFunction(tool)) tools.push(yield* functionTool(tool, field))
      else ignored.push(field)
    }
    const choice = yield* toolChoice(body.tool_choice, {
      count: tools.length,
      find: (name) => tools.find((tool) => tool.name === name)?.name
    })
    return { tools: choice === "none" ? [] : tools, choice: choice === "none" ? undefined : choice, asFunctions: false, ignored }
  })
