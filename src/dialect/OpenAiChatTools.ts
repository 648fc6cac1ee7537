import { Result } from "effect"
import type { ChatCompletionRequest } from "../../schema/openai/Chat.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { Tool, ToolChoice } from "../domain/Tool.ts"
import { toolChoice } from "./OpenAiToolChoice.ts"

export interface DecodedTools {
  /** Empty where the model may call none. */
  readonly tools: ReadonlyArray<Tool>
  readonly choice: ToolChoice | undefined
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

/** The tools that the model may call. `none` leaves them out of the prompt, so that the model has nothing to call. */
export const decodeTools = (body: ChatCompletionRequest): Result.Result<DecodedTools, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    if (body.functions !== undefined && body.functions.length > 0) {
      const field = "functions"
      return yield* Result.fail(
        new UnsupportedFeature({ message: `${field}: the older form of tools is not supported by this version`, field })
      )
    }
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
    return { tools: choice === "none" ? [] : tools, choice: choice === "none" ? undefined : choice, ignored }
  })
