import type { Tool } from "../domain/Tool.ts"
import type { Draft, ToolCall } from "./Arrangement.ts"
import { fromData, readJson } from "./jinja/Json.ts"
import { concat, mark, type Text } from "./jinja/MarkedText.ts"
import { Dict, type Value } from "./jinja/Values.ts"
import type { Preparation } from "./Preparation.ts"

/** The names under which templates look for an answer's reasoning. */
export const reasoningFields = ["reasoning_content", "reasoning", "thinking"] as const

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** Nine letters and digits that follow from the id (64-bit FNV-1a). */
const shortId = (id: string): string => {
  if (/^[a-zA-Z0-9]{9}$/.test(id)) return id
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(id)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  let text = ""
  for (let i = 0; i < 9; i++) {
    text += alphabet.charAt(Number(hash % 62n))
    hash /= 62n
  }
  return text
}

const dict = (entries: Readonly<Record<string, Value | undefined>>): Dict => {
  const result = new Dict()
  for (const [key, value] of Object.entries(entries)) if (value !== undefined) result.set(key, value)
  return result
}

const callArguments = (call: ToolCall, preparation: Preparation): Value => {
  if (preparation.calls.arguments === "string") return mark(call.arguments)
  const source = call.arguments.trim() === "" ? "{}" : call.arguments
  try {
    return readJson(source, true)
  } catch {
    // A call that the model broke off or got wrong comes back with the history; refusing it would end the conversation for good.
    return mark(call.arguments)
  }
}

const callText = (call: ToolCall): Text =>
  concat(
    "<tool_call>\n{\"name\": ",
    mark(JSON.stringify(call.name)),
    ", \"arguments\": ",
    mark(call.arguments.trim() === "" ? "{}" : call.arguments),
    "}\n</tool_call>"
  )

const assistant = (message: Extract<Draft, { role: "assistant" }>, preparation: Preparation, content: (text: Text) => Value): Dict => {
  const { calls } = preparation
  const hasText = message.content !== null && message.content !== ""
  if (message.calls.length > 0 && calls.arguments === "text") {
    const texts = [...(message.content !== null && hasText ? [message.content] : []), ...message.calls.map(callText)]
    return assistant({ ...message, calls: [], content: texts.reduce((left, right) => concat(left, "\n", right)) }, preparation, content)
  }
  const reasoning = message.reasoning === undefined || message.reasoning === "" ||
      (!calls.withReasoning && message.calls.length > 0 && hasText)
    ? undefined
    : mark(message.reasoning)
  const id = (call: ToolCall) => mark(calls.shortIds ? shortId(call.id) : call.id)
  const empty = message.calls.length === 0 ? "" : calls.emptyContent
  return dict({
    role: "assistant",
    content: message.content !== null && hasText ? content(message.content) : empty === "absent" ? undefined : empty,
    ...Object.fromEntries(reasoningFields.map((name) => [name, reasoning])),
    tool_calls: message.calls.length === 0
      ? undefined
      : message.calls.map((call) =>
        dict({
          id: id(call),
          type: "function",
          function: dict({ name: mark(call.name), arguments: callArguments(call, preparation) })
        })
      )
  })
}

/** A message as the template's value. */
export const messageValue = (message: Draft, preparation: Preparation): Dict => {
  const content = (text: Text): Value => preparation.content === "string" ? text : [dict({ type: "text", text })]
  switch (message.role) {
    case "assistant":
      return assistant(message, preparation, content)
    case "tool":
      return dict({
        role: "tool",
        tool_call_id: mark(preparation.calls.shortIds ? shortId(message.id) : message.id),
        name: message.name === undefined ? undefined : mark(message.name),
        content: content(message.content)
      })
    default:
      return dict({
        role: message.role,
        content: content(message.content),
        name: message.name === undefined ? undefined : mark(message.name)
      })
  }
}

/** The tools as the template's value. */
export const toolValues = (tools: ReadonlyArray<Tool>, { completeTools, noTools, unionTypes }: Preparation): Value =>
  tools.length === 0 && noTools === "null"
    ? null
    : tools.map((tool) => {
      const complete = completeTools ? { description: "", parameters: { type: "object", properties: {} }, ...tool } : tool
      return toolValue(unionTypes ? complete : { ...complete, parameters: withoutUnionTypes(complete.parameters) })
    })

/** Keywords of a schema whose values are data, not schemas. */
const dataKeywords: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"])

/** An equal schema in which no type is a list: `anyOf` says the same. */
const withoutUnionTypes = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withoutUnionTypes)
  if (typeof schema !== "object" || schema === null) return schema
  const entries = Object.entries(schema).map((
    [key, value]
  ): [string, unknown] => [key, dataKeywords.has(key) ? value : withoutUnionTypes(value)])
  const { type, ...others } = Object.fromEntries(entries)
  if (!Array.isArray(type)) return Object.fromEntries(entries)
  const anyOf = type.map((one) => ({ type: one }))
  return "anyOf" in others
    ? { ...others, allOf: [...(Array.isArray(others["allOf"]) ? others["allOf"] : []), { anyOf }] }
    : { ...others, anyOf }
}

/** A tool as OpenAI's function object. */
const toolValue = (tool: Tool): Dict =>
  dict({
    type: "function",
    function: dict({
      name: mark(tool.name),
      description: tool.description === undefined ? undefined : mark(tool.description),
      parameters: tool.parameters === undefined ? undefined : fromData(tool.parameters, true)
    })
  })
