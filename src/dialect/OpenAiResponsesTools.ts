import { Result, Schema } from "effect"
import { CustomTool, FunctionTool, NamespaceTool } from "../../schema/openai/ResponsesItems.ts"
import { InvalidRequest } from "../domain/Errors.ts"
import type { Tool } from "../domain/Tool.ts"
import { decoder } from "./WireRequest.ts"

export type Fields = Readonly<Record<string, unknown>>

/** A decoder of one value inside a body; its errors name the path from the body on. */
export const decoderAt = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = decoder(schema)
  return (fields: Fields, path: string): Result.Result<A, InvalidRequest> =>
    Result.mapError(decode({ fields }), ({ field, message }) =>
      new InvalidRequest(
        field === null
          ? { message: `${path}: ${message}`, field: path }
          : { message: `${path}.${message}`, field: `${path}.${field}` }
      ))
}

const decodeFunction = decoderAt(FunctionTool)
const decodeCustom = decoderAt(CustomTool)
/** Tools are decoded one by one, each as its own kind, so that an error names the tool's field. */
export const looseTools = Schema.Array(Schema.Record(Schema.String, Schema.Unknown))

const decodeNamespace = decoderAt(Schema.Struct({ ...NamespaceTool.fields, tools: looseTools }))

/** What a tool that the model calls is to the client. */
export interface ToolTarget {
  readonly kind: "function" | "custom"
  readonly name: string
  readonly namespace: string | undefined
}

const key = (name: string, namespace: string | undefined) => JSON.stringify([namespace ?? null, name])

const flatName = (name: string, namespace: string | undefined) => namespace === undefined ? name : `${namespace}__${name}`

const customParameters = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input, as it is." } },
  required: ["input"]
}

type CustomFormat = (typeof CustomTool.Type)["format"]

const customDescription = (description: string | null | undefined, format: CustomFormat): string | undefined => {
  const grammar = format?.definition === undefined
    ? undefined
    : `The input is one string of this ${format.syntax ?? "formal"} grammar:\n${format.definition}`
  const text = [description ?? "", grammar ?? ""].filter((part) => part !== "").join("\n\n").toWellFormed()
  return text === "" ? undefined : text
}

/** The grammar that a custom tool's input is held to, where it is of a known kind. */
const inputGrammar = (format: CustomFormat): Tool["inputGrammar"] => {
  if (format?.type !== "grammar" || format.definition === undefined) return undefined
  const { definition, syntax = "lark" } = format
  return syntax === "lark" || syntax === "regex" ? { syntax, definition } : undefined
}

/**
 * The tools of one request, as the model sees them: a flat list of functions. A function in a namespace is `namespace__name`, with a number
 * where another tool has that name, and a custom tool is a function of one string.
 */
export class ToolSet {
  readonly tools: Array<Tool> = []
  /** Paths of what the model is not shown, or not held to. */
  readonly ignored: Array<string> = []
  private readonly targets = new Map<string, ToolTarget>()
  private readonly modelNames = new Map<string, string>()

  /** Adds the tools at a path of the request. */
  add(tools: ReadonlyArray<Fields>, path: string, namespace?: string): Result.Result<void, InvalidRequest> {
    for (const [index, tool] of tools.entries()) {
      const added = this.addOne(tool, `${path}.${index}`, namespace)
      if (Result.isFailure(added)) return added
    }
    return Result.void
  }

  /** What the client knows a called tool as. */
  target(modelName: string): ToolTarget {
    return this.targets.get(modelName) ?? { kind: "function", name: modelName, namespace: undefined }
  }

  /** What the model knows a tool of the client as. */
  modelName(name: string, namespace: string | undefined): string {
    return this.modelNames.get(key(name, namespace)) ?? flatName(name, namespace)
  }

  /** Whether the client has a tool of this name. */
  has(name: string, namespace: string | undefined): boolean {
    return this.modelNames.has(key(name, namespace))
  }

  private addOne(tool: Fields, path: string, namespace: string | undefined): Result.Result<void, InvalidRequest> {
    switch (tool["type"]) {
      case "function":
        return Result.map(decodeFunction(tool, path), ({ description, name, parameters, strict }) => {
          this.define({ kind: "function", name, namespace }, {
            ...(description === undefined || description === null ? {} : { description: description.toWellFormed() }),
            ...(parameters === undefined || parameters === null ? {} : { parameters }),
            ...(strict === true ? { strict, field: `${path}.parameters` } : {})
          })
        })
      case "custom":
        return Result.map(decodeCustom(tool, path), ({ description, format, name }) => {
          const grammar = inputGrammar(format)
          if (format !== undefined && format !== null && format.type !== "text" && grammar === undefined) {
            this.ignored.push(`${path}.format`)
          }
          const text = customDescription(description, format)
          this.define({ kind: "custom", name, namespace }, {
            ...(text === undefined ? {} : { description: text }),
            parameters: customParameters,
            ...(grammar === undefined ? {} : { inputGrammar: grammar, field: `${path}.format.definition` })
          })
        })
      case "namespace":
        return namespace === undefined
          ? Result.flatMap(decodeNamespace(tool, path), ({ name, tools }) => this.add(tools, `${path}.tools`, name))
          : Result.fail(new InvalidRequest({ message: `${path}: a namespace cannot hold another one`, field: path }))
      default:
        if (tool["type"] !== undefined && typeof tool["type"] !== "string") {
          return Result.fail(new InvalidRequest({ message: `${path}.type: Expected a string`, field: `${path}.type` }))
        }
        this.ignored.push(path)
        return Result.void
    }
  }

  private define(target: ToolTarget, tool: Omit<Tool, "name">): void {
    const own = key(target.name, target.namespace)
    if (this.modelNames.has(own)) return
    const flat = flatName(target.name, target.namespace)
    let name = flat
    for (let number = 2; this.targets.has(name); number++) name = `${flat}_${number}`
    this.targets.set(name, target)
    this.modelNames.set(own, name)
    this.tools.push({ name, ...tool })
  }
}
