import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { syntaxes } from "../../../src/generation/tools/syntaxes.ts"
import { checkChatStream } from "../../support/ChatStreamChecker.ts"
import { checkMessagesStream } from "../../support/MessagesStreamChecker.ts"
import { checkResponsesStream } from "../../support/ResponsesStreamChecker.ts"
import { type Call, writers } from "../grammar/tools/renderCalls.ts"
import { answerOf, harness, tokensOf, user } from "./harness.ts"

const parameters = {
  type: "object",
  properties: {
    a: { type: "string" },
    n: { type: "integer" },
    b: { type: "boolean" },
    x: { type: ["null", "string"] },
    list: { type: "array" }
  }
}

/** Ten calls of one turn, whose strings hold what syntaxes are made of. */
const calls: ReadonlyArray<Call> = [
  {},
  { a: "braces {\"x\": [1]} } ] {" },
  { a: "\"double\" 'single' \\back\\ `tick`" },
  { a: "lines\n\n  indented\ttab\n" },
  { a: "</tool_call> <tool_call> </function> [TOOL_CALLS] <|python_tag|> <|channel|>" },
  { a: "日本語 😀 é 👩\u200d👩" },
  { a: "```json\n{}\n```" },
  { n: -5, b: true, x: null, list: [1.5, "two", { k: [], "a b": false }] },
  { a: "", x: "text" },
  { a: "007" }
].map((own, index) => ({ name: `f${index}`, arguments: own }))

const names = calls.map(({ name }) => name)
const chatTools = names.map((name) => ({ type: "function", function: { name, parameters } }))
const messagesTools = names.map((name) => ({ name, input_schema: parameters }))
const responsesTools = names.map((name) => ({ type: "function", name, parameters }))

const post = (url: string, path: string, body: object) =>
  Effect.promise(async () => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
    return (await fetch(url + path, init)).text()
  })

const asCalls = (own: ReadonlyArray<{ readonly name: string; readonly text: string }>) =>
  own.map(({ name, text }) => ({ name, arguments: JSON.parse(text) }))

describe("ten calls of one turn", () => {
  for (const { name } of syntaxes) {
    const write = writers[name === "generic" ? "hermes" : name]
    if (write === undefined) throw new Error(`no writer for ${name}`)
    // A turn of gpt-oss ends with its call.
    const expected = name === "harmony" ? calls.slice(7, 8) : calls

    it.live(`in ${name} are the same in every dialect, streamed and whole`, () =>
      Effect.gen(function*() {
        const output = write(expected)
        const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf(output) }) }, served: { toolSyntax: name } })

        const chat = { messages: user("go"), tools: chatTools }
        const whole = yield* Effect.promise(() => answerOf(server.post(chat)))
        const [streamed] = checkChatStream(yield* Effect.promise(async () => (await server.post({ ...chat, stream: true })).text())).choices
        const wholeCalls = (whole.choices[0]?.message.tool_calls ?? []).map((call) => ({
          name: call.function.name,
          text: call.function.arguments
        }))
        assert.deepStrictEqual(asCalls(wholeCalls), [...expected])
        assert.strictEqual(whole.choices[0]?.finish_reason, "tool_calls")
        assert.isNull(whole.choices[0]?.message.content)
        assert.deepStrictEqual(streamed?.toolCalls.map((call) => ({ name: call.name, text: call.arguments })), wholeCalls)
        assert.strictEqual(new Set(whole.choices[0]?.message.tool_calls?.map((call) => call.id)).size, expected.length)

        const messages = { max_tokens: 3000, messages: user("go"), tools: messagesTools }
        const message = JSON.parse(yield* post(server.url, "/v1/messages", messages))
        const blocks = checkMessagesStream(yield* post(server.url, "/v1/messages", { ...messages, stream: true })).content
        for (const content of [message.content, blocks]) {
          assert.deepStrictEqual(
            content.flatMap((block: { type: string; name: string; input: unknown }) =>
              block.type === "tool_use" ? [{ name: block.name, arguments: block.input }] : []
            ),
            [...expected]
          )
        }
        assert.strictEqual(message.stop_reason, "tool_use")

        const responses = { input: "go", tools: responsesTools }
        const response = JSON.parse(yield* post(server.url, "/v1/responses", responses))
        const { response: ended } = checkResponsesStream(yield* post(server.url, "/v1/responses", { ...responses, stream: true }))
        for (const { output: items } of [response, ended]) {
          assert.deepStrictEqual(
            asCalls(items.flatMap((item: { type: string; name?: string; arguments?: string }) =>
              item.type === "function_call" ? [{ name: item.name ?? "", text: item.arguments ?? "" }] : []
            )),
            [...expected]
          )
        }
      }))
  }
})
