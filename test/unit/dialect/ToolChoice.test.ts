import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as AnthropicMessages from "../../../src/dialect/AnthropicMessages.ts"
import * as OpenAiChat from "../../../src/dialect/OpenAiChat.ts"
import * as OpenAiResponses from "../../../src/dialect/OpenAiResponses.ts"
import { parse } from "../../../src/dialect/WireRequest.ts"

const common = { tenant: "t", session: undefined, randomSeed: 0 }
const stored = { items: () => undefined, item: () => undefined }
const served = {
  id: "m",
  contextLength: 1,
  weights: "w",
  weightsBytes: 1,
  parameters: 1,
  slots: 1,
  cacheRamMib: 0,
  prefixCache: false
}

const messages = [{ role: "user", content: "hi" }]
const parameters = { type: "object", properties: {} }

const chatTools = [
  { type: "function", function: { name: "f", parameters } },
  { type: "function", function: { name: "g", parameters, strict: true } }
]
const responsesTools = [
  { type: "function", name: "f", parameters },
  { type: "custom", name: "patch" },
  { type: "namespace", name: "n", tools: [{ type: "function", name: "g", parameters, strict: true }] }
]
const messagesTools = [{ name: "f", input_schema: parameters }, { name: "g", input_schema: parameters, strict: true }]

const body = (value: object) => Result.getOrThrow(parse(JSON.stringify(value)))

const chat = (fields: object) => OpenAiChat.decode(body({ messages, tools: chatTools, ...fields }), common)
const responses = (fields: object) => OpenAiResponses.decode(body({ input: "hi", tools: responsesTools, ...fields }), { ...common, stored })
const anthropic = (fields: object) => AnthropicMessages.decode(body({ messages, tools: messagesTools, ...fields }), { ...common, served })

type Decode = (fields: object) => Result.Result<{ readonly request: { readonly toolChoice?: unknown } }, unknown>

const choice = (decode: Decode, tool_choice: unknown) => Result.getOrThrow(decode({ tool_choice })).request.toolChoice

const refused = (decode: Decode, tool_choice: unknown) => {
  const result = decode({ tool_choice })
  if (Result.isSuccess(result)) throw new Error("not refused")
  return result.failure
}

const field = "tool_choice"

describe("tool_choice", () => {
  it("of Chat Completions", () => {
    for (const free of ["auto", { type: "auto" }]) assert.isUndefined(choice(chat, free))
    for (const forced of ["required", "any", { type: "required" }]) assert.deepStrictEqual(choice(chat, forced), { required: true, field })
    assert.deepStrictEqual(choice(chat, { type: "function", function: { name: "g" } }), { required: true, names: ["g"], once: true, field })
    const tools = [{ type: "function", function: { name: "f" } }, { type: "web_search" }]
    assert.deepStrictEqual(choice(chat, { type: "allowed_tools", allowed_tools: { mode: "required", tools } }), {
      required: true,
      names: ["f"],
      field
    })
    assert.deepStrictEqual(choice(chat, { type: "allowed_tools", allowed_tools: { tools } }), { required: false, names: ["f"], field })
    assert.deepInclude(refused(chat, { type: "function", function: { name: "x" } }), { _tag: "InvalidRequest", field })
    assert.deepInclude(refused(chat, { type: "function" }), { _tag: "InvalidRequest", field })
    assert.deepInclude(
      refused(chat, { type: "allowed_tools", allowed_tools: { tools: [{ type: "function", function: { name: "x" } }] } }),
      {
        field: "tool_choice.allowed_tools.tools.0"
      }
    )
    assert.deepInclude(refused(chat, { type: "allowed_tools", allowed_tools: { mode: "maybe", tools } }), {
      field: "tool_choice.allowed_tools.mode"
    })
    assert.deepInclude(refused((fields) => chat({ ...fields, tools: [] }), "required"), { _tag: "InvalidRequest", field })
  })

  it("of Responses, with the names that the model knows", () => {
    assert.deepStrictEqual(choice(responses, "required"), { required: true, field })
    assert.deepStrictEqual(choice(responses, { type: "function", name: "f" }), { required: true, names: ["f"], once: true, field })
    assert.deepStrictEqual(choice(responses, { type: "custom", name: "patch" }), { required: true, names: ["patch"], once: true, field })
    assert.deepStrictEqual(choice(responses, { type: "function", name: "g", namespace: "n" }), {
      required: true,
      names: ["n__g"],
      once: true,
      field
    })
    assert.deepStrictEqual(
      choice(responses, {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "function", name: "f" }, { type: "custom", name: "patch" }]
      }),
      { required: false, names: ["f", "patch"], field }
    )
    assert.deepInclude(refused(responses, { type: "web_search_preview" }), { _tag: "UnsupportedFeature", field: "tool_choice.type" })
    assert.deepInclude(refused(responses, { type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] }), {
      field: "tool_choice.tools"
    })
  })

  it("of Messages", () => {
    assert.isUndefined(choice(anthropic, { type: "auto" }))
    assert.deepStrictEqual(choice(anthropic, { type: "any" }), { required: true, field })
    assert.deepStrictEqual(choice(anthropic, { type: "tool", name: "g" }), { required: true, names: ["g"], once: true, field })
  })
})

describe("strict tools", () => {
  it("keep where their schema stands, in every dialect", () => {
    const tools = (decode: Decode) => {
      const { request } = Result.getOrThrow(decode({}))
      return (request as { readonly prompt: { readonly conversation: { readonly tools: ReadonlyArray<{ readonly field?: string }> } } })
        .prompt
        .conversation.tools.map((tool) => tool.field)
    }
    assert.deepStrictEqual(tools(chat), [undefined, "tools.1.function.parameters"])
    assert.deepStrictEqual(tools(responses), [undefined, undefined, "tools.2.tools.0.parameters"])
    assert.deepStrictEqual(tools(anthropic), [undefined, "tools.1.input_schema"])
  })
})
