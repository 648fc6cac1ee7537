import { Result } from "effect"
import type { ChatCompletionRequest } from "../../schema/openai/Chat.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { Tool } from "../domain/Tool.ts"

export interface DecodedTools {
  /** Empty where the model may call none. */
  readonly tools: ReadonlyArray<Tool>
  /** Paths of the tools that this server knows nothing of. */
  readonly ignored: ReadonlyArray<string>
}

type WireTool = NonNullable<ChatCompletionRequest["tools"]>[number]

const unenforced = (field: string, what: string) =>
  new UnsupportedFeature({ message: `${field}: ${what} is not supported by this version`, field })

/** `auto` and `none` are promises that need no enforcement. */
const mode = (choice: ChatCompletionRequest["tool_choice"]): Result.Result<"auto" | "none", InvalidRequest | UnsupportedFeature> => {
  const field = "tool_choice"
  if (choice === undefined || choice === "auto" || choice === "none") return Result.succeed(choice ?? "auto")
  if (choice === "required" || choice === "any") return Result.fail(unenforced(field, "forcing a tool call"))
  if (typeof choice === "string") {
    return Result.fail(
      new InvalidRequest({ message: `${field}: Expected auto, none, required, or an object that names a function`, field })
    )
  }
  if (choice["type"] === "auto" || choice["type"] === "none") return Result.succeed(choice["type"])
  return Result.fail(unenforced(field, choice["type"] === "allowed_tools" ? "allowing only some tools" : "forcing a tool call"))
}

const isFunction = (tool: WireTool): boolean =>
  tool.type === "function" || (tool.type === undefined && (tool.function ?? tool.name) !== undefined)

const functionTool = (wire: WireTool, field: string): Result.Result<Tool, InvalidRequest | UnsupportedFeature> => {
  const own = wire.function ?? wire
  const path = wire.function === undefined ? field : `${field}.function`
  const { description, name, parameters, strict } = own
  if (name === undefined || name === "") {
    return Result.fail(new InvalidRequest({ message: `${path}.name: Expected a non-empty string`, field: `${path}.name` }))
  }
  if (strict === true) return Result.fail(unenforced(`${path}.strict`, "following a tool's schema strictly"))
  return Result.succeed({
    name: name.toWellFormed(),
    ...(description === undefined || description === null ? {} : { description: description.toWellFormed() }),
    ...(parameters === undefined || parameters === null ? {} : { parameters })
  })
}

/** The tools that the model may call. `none` leaves them out of the prompt, so that the model has nothing to call. */
export const decodeTools = (body: ChatCompletionRequest): Result.Result<DecodedTools, InvalidRequest | UnsupportedFeature> =>
  Result.gen(function*() {
    const choice = yield* mode(body.tool_choice)
    if (body.functions !== undefined && body.functions.length > 0) {
      return yield* Result.fail(unenforced("functions", "the older form of tools"))
    }
    const tools: Array<Tool> = []
    const ignored: Array<string> = []
    for (const [index, tool] of (body.tools ?? []).entries()) {
      const field = `tools.${index}`
      if (isFunction(tool)) tools.push(yield* functionTool(tool, field))
      else ignored.push(field)
    }
    return { tools: choice === "none" ? [] : tools, ignored }
  })
