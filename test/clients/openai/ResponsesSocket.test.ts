import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import type { Response, ResponsesServerEvent } from "openai/resources/responses/responses"
import { ResponsesWS } from "openai/resources/responses/ws"
import { type Harness, harness, type HarnessOptions, textOf, tokensOf } from "../../unit/server/harness.ts"
import { model, says, weather } from "./scripted.ts"

/** The official client's socket against a server that says one text after the other. */
const using = (options: HarnessOptions, use: (socket: ResponsesWS, server: Harness) => Promise<void>) =>
  Effect.gen(function*() {
    const server = yield* harness({ ...options, settings: { websocket: true, apiKey: "sk-test" } })
    yield* Effect.promise(async () => {
      const socket = new ResponsesWS(new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "sk-test", maxRetries: 0 }))
      const failures: Array<unknown> = []
      socket.on("error", (error) => failures.push(error))
      await use(socket, server)
      socket.close()
      assert.deepStrictEqual(failures, [])
    })
  })

/** Events up to the end of a response, by the client's own iterator. */
const answer = async (socket: ResponsesWS, lane?: string): Promise<{ readonly response: Response; readonly text: string }> => {
  let text = ""
  for await (const event of socket.stream()) {
    if (event.type === "error") throw event.error
    if (event.type === "close") throw new Error("the connection ended")
    if (event.type !== "message" || event.message.stream_id !== lane) continue
    const { message } = event
    if (message.type === "response.output_text.delta") text += message.delta
    if (message.type === "response.completed") return { response: message.response, text }
  }
  throw new Error("no more events")
}

describe("the official openai package over WebSocket", () => {
  it.live("one response after the other, each going on from the one before", () =>
    using(says("Hello!", "Again!"), async (socket, server) => {
      socket.send({ type: "response.create", model, input: "hi", store: false })
      const first = await answer(socket)
      assert.strictEqual(first.text, "Hello!")
      assert.strictEqual(first.response.usage?.output_tokens, 6)
      socket.send({ type: "response.create", model, input: "and?", store: false, previous_response_id: first.response.id })
      assert.strictEqual((await answer(socket)).text, "Again!")
      assert.strictEqual(textOf(server.engine.requests[1]!.tokens), "user:hi|assistant:Hello!|user:and?|")
    }))

  it.live("a tool loop after a warm-up", () =>
    using(
      says("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>", "Sunny."),
      async (socket, server) => {
        const seen: Array<ResponsesServerEvent["type"]> = []
        socket.on("event", (event) => seen.push(event.type))
        const request = { type: "response.create" as const, model, tools: [weather], store: false }
        socket.send({ ...request, input: "weather in Paris?", generate: false })
        const warm = (await answer(socket)).response
        assert.strictEqual(server.engine.requests.length, 0)
        socket.send({ ...request, input: [], previous_response_id: warm.id })
        const { response } = await answer(socket)
        const call = response.output.find((item) => item.type === "function_call")
        assert.deepStrictEqual(JSON.parse(call?.arguments ?? ""), { city: "Paris" })
        socket.send({
          ...request,
          previous_response_id: response.id,
          input: [{ type: "function_call_output", call_id: call?.call_id ?? "", output: "sun" }]
        })
        assert.strictEqual((await answer(socket)).text, "Sunny.")
        assert.include(seen, "response.function_call_arguments.delta")
        assert.include(textOf(server.engine.requests[1]!.tokens), "sun")
      }
    ))

  it.live("two lanes at once", () =>
    using({ script: { answer: (request) => ({ tokens: tokensOf(textOf(request.tokens)), interval: "1 millis" }) } }, async (socket) => {
      const answers = Promise.all([answer(socket, "a"), answer(socket, "b")])
      socket.send({ type: "response.create", model, input: "left", stream_id: "a" })
      socket.send({ type: "response.create", model, input: "right", stream_id: "b" })
      assert.deepStrictEqual((await answers).map(({ text }) => text), ["user:left|", "user:right|"])
    }))

  it.live("an error has its code, and the connection goes on", () =>
    Effect.gen(function*() {
      const server = yield* harness({ ...says("Hello!"), settings: { websocket: true } })
      yield* Effect.promise(async () => {
        const socket = new ResponsesWS(new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused" }))
        const failed = new Promise<{ readonly message: string; readonly code: unknown }>((resolve) =>
          socket.on("error", ({ error, message }) => {
            if (error !== undefined && "error" in error) resolve({ message, code: error.error.code })
          })
        )
        socket.send({ type: "response.create", model, input: "hi", previous_response_id: "resp_none" })
        const { code, message } = await failed
        assert.strictEqual(code, "previous_response_not_found")
        assert.match(message, /^previous_response_id: /)
        socket.send({ type: "response.create", model, input: "hi" })
        assert.strictEqual((await answer(socket)).text, "Hello!")
        socket.close()
      })
    }))
})
