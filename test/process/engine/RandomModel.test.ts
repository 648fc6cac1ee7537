import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { HttpServer } from "effect/http"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Engine } from "../../../src/engine/Engine.ts"
import { addonPath, projectRoot } from "../../../src/engine/EnginePaths.ts"
import { syntaxes } from "../../../src/generation/tools/syntaxes.ts"
import { layerEngineInProcess, layerServerWithoutEngine } from "../../../src/Mashbox.ts"
import { Settings } from "../../../src/Settings.ts"
import { checkChatStream } from "../../support/ChatStreamChecker.ts"
import { type Schema, valid } from "../../support/SchemaOracle.ts"
import { settings } from "../../unit/server/harness.ts"

const golden = (family: string, name: string) => join(projectRoot, "test", "fixtures", "golden", family, name)
const withoutMarks = golden("llama", "model-f32.gguf")
/** Its vocabulary has the tokens of messages in channels. */
const withChannels = golden("gpt-oss", "model-mxfp4_moe.gguf")

/** Bounded all over, so that a model that never ends of its own accord has to. */
const schemas: Readonly<Record<string, Schema>> = {
  book: {
    type: "object",
    properties: {
      room: { type: "string", maxLength: 6 },
      nights: { type: "integer", minimum: 1, maximum: 30 },
      kind: { enum: ["single", "double \"</tool_call>\""] },
      breakfast: { type: ["boolean", "null"] },
      tags: { type: "array", items: { enum: ["a", "{b}", "é"] }, maxItems: 2 }
    },
    required: ["room", "kind", "breakfast"],
    additionalProperties: false
  },
  ping: { type: "object", properties: {}, additionalProperties: false }
}

const tools = (strict: boolean) =>
  Object.entries(schemas).map(([name, parameters]) => ({ type: "function", function: { name, parameters, strict } }))

const responsesTools = Object.entries(schemas).map(([name, parameters]) => ({ type: "function", name, parameters, strict: true }))
const messagesTools = Object.entries(schemas).map(([name, schema]) => ({ name, input_schema: schema }))

const isCall = (name: string, args: unknown): boolean => {
  const schema = schemas[name]
  return schema !== undefined && valid(schema, args)
}

interface Response {
  readonly status: string
  readonly output: ReadonlyArray<{ readonly type: string; readonly name?: string; readonly arguments?: string }>
}

interface Message {
  readonly stop_reason: string
  readonly content: ReadonlyArray<{ readonly type: string; readonly name?: string; readonly input?: unknown }>
}

/** The model's own has no place for tools, and their schemas would not fit into its context. */
const chatTemplate =
  "{% for tool in tools %}{{ tool.function.name }}{% for key in tool.function.parameters.properties %} {{ key }}{% endfor %}; {% endfor %}{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"

interface Answer {
  readonly choices: ReadonlyArray<{
    readonly finish_reason: string
    readonly message: {
      readonly content: string | null
      readonly reasoning_content?: string
      readonly tool_calls?: ReadonlyArray<{ readonly function: { readonly name: string; readonly arguments: string } }>
    }
  }>
}

const layerServer = (toolSyntax: string, file: string) => {
  const catalogEntry = {
    id: "random",
    file,
    aliases: [],
    chatTemplate,
    toolSyntax,
    reasoning: undefined,
    preTokenizer: undefined,
    sampling: {}
  }
  return layerServerWithoutEngine.pipe(
    Layer.provideMerge(layerEngineInProcess),
    Layer.provide(Layer.succeed(Settings, { ...settings, model: file, slots: 2, catalogEntry })),
    Layer.provide(Logger.layer([]))
  )
}

const models = [...syntaxes.map(({ name }) => ({ syntax: name, file: withoutMarks })), { syntax: "harmony", file: withChannels }]

describe("a model of random weights", () => {
  for (const { file, syntax } of models) {
    const isThere = existsSync(file) && existsSync(addonPath())
    const marks = file === withChannels ? " with tokens for its channels" : ""
    it.live.skipIf(!isThere)(
      `writes valid calls in ${syntax}${marks}: required, named and strict, streamed and whole${
        isThere ? "" : " (needs its file and the built addon)"
      }`,
      () =>
        Effect.gen(function*() {
          yield* (yield* Engine).ready
          const { address } = yield* HttpServer.HttpServer
          assert("port" in address)
          const url = `http://127.0.0.1:${address.port}/v1`
          const send = async (body: object, path = "/chat/completions") => {
            const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
            const response = await fetch(url + path, init)
            const text = await response.text()
            assert.strictEqual(response.status, 200, text)
            return text
          }
          const named = { type: "function", function: { name: "book" } }
          let reasoned = 0
          yield* Effect.promise(async () => {
            const response: Response = JSON.parse(
              await send({
                input: "Hm?",
                tools: responsesTools,
                tool_choice: "required",
                parallel_tool_calls: false,
                max_output_tokens: 350,
                temperature: 1
              }, "/responses")
            )
            const called = response.output.filter(({ type }) => type === "function_call")
            assert.strictEqual(called.length, 1, syntax)
            for (const { arguments: text = "", name = "" } of called) {
              assert.isTrue(isCall(name, JSON.parse(text)), `${syntax} ${name} ${text}`)
            }
            const message: Message = JSON.parse(
              await send({
                messages: [{ role: "user", content: "Hm?" }],
                tools: messagesTools,
                tool_choice: { type: "any", disable_parallel_tool_use: true },
                max_tokens: 350,
                temperature: 1
              }, "/messages")
            )
            assert.strictEqual(message.stop_reason, "tool_use", syntax)
            const uses = message.content.filter(({ type }) => type === "tool_use")
            assert.strictEqual(uses.length, 1, syntax)
            for (const { input, name = "" } of uses) assert.isTrue(isCall(name, input), `${syntax} ${name} ${JSON.stringify(input)}`)

            for (const strict of [false, true]) {
              for (const choice of ["required", named]) {
                for (const sampling of [{ temperature: 0 }, { temperature: 1, seed: 1 }, { temperature: 2, seed: 2 }]) {
                  const body = {
                    messages: [{ role: "user", content: "Hm?" }],
                    tools: tools(strict),
                    tool_choice: choice,
                    parallel_tool_calls: false,
                    max_tokens: 350,
                    ...sampling
                  }
                  const answer: Answer = JSON.parse(await send(body))
                  const label = `${syntax} ${JSON.stringify([choice, strict, sampling, answer.choices])}`
                  const [own] = answer.choices
                  const calls = own?.message.tool_calls ?? []
                  if ((own?.message.reasoning_content ?? "") !== "") reasoned++
                  assert.strictEqual(own?.finish_reason, "tool_calls", label)
                  assert.strictEqual(calls.length, 1, label)
                  for (const { function: { arguments: text, name } } of calls) {
                    assert.isTrue(isCall(name, JSON.parse(text)), label)
                    if (choice === named) assert.strictEqual(name, "book", label)
                  }
                  assert.deepStrictEqual(
                    checkChatStream(await send({ ...body, stream: true })).choices[0]?.toolCalls.map((call) => [call.name, call.arguments]),
                    calls.map((call) => [call.function.name, call.function.arguments])
                  )
                }
              }
            }
          })
          // Where the model can, it reasons before it calls, until it has to stop.
          if (file === withChannels) assert.isAbove(reasoned, 0)
        }).pipe(Effect.provide(layerServer(syntax, file))),
      60_000
    )
  }
})
