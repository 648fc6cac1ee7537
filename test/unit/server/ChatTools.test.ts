import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { NativeSubmit } from "../../../src/engine/Native.ts"
import type { ScriptedAnswer } from "../../../src/engine/ScriptedScheduler.ts"
import { checkChatStream } from "../../support/ChatStreamChecker.ts"
import { answerOf, errorOf, events, eventually, harness, leaving, textOf, tokensOf, user } from "./harness.ts"

const call = (name: string, args: string) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`

const says = (text: string) => ({ answer: () => ({ tokens: tokensOf(text) }) })

const tools = [{
  type: "function",
  function: { name: "get_weather", description: "d", parameters: { type: "object", properties: { city: { type: "string" } } } }
}]

const weather = { messages: user("weather?"), tools }

/** Every way of a model to use tools, and what is left of it: text, and calls as name and arguments. */
const outputs: ReadonlyArray<readonly [output: string, content: string | null, calls: ReadonlyArray<readonly [string, string]>]> = [
  ["No tool.\n", "No tool.\n", []],
  [call("get_weather", `{"city": "Köln"}`), null, [["get_weather", `{"city": "Köln"}`]]],
  [`Let me see.\n${call("a", "{}")}\n${call("b", `{"x": [1, {"y": "}<tool_call>"}]}`)}`, "Let me see.", [
    ["a", "{}"],
    ["b", `{"x": [1, {"y": "}<tool_call>"}]}`]
  ]],
  [`One\n${call("a", "{}")}\nTwo\n${call("b", "{}")}\nThree\n`, "One\nTwo\nThree\n", [["a", "{}"], ["b", "{}"]]],
  [`<tool_call>\n{"name": "ping"}\n</tool_call>`, null, [["ping", "{}"]]],
  ["<tool_call>\n{\"name\": broken}\n</tool_call>", "<tool_call>\n{\"name\": broken}\n</tool_call>", []]
]

describe("tool calls", () => {
  for (const [output, content, calls] of outputs) {
    it.live(`are the same streamed and whole: ${JSON.stringify(output.slice(0, 40))}`, () =>
      Effect.gen(function*() {
        const server = yield* harness({ script: says(output) })
        const whole = yield* Effect.promise(() => answerOf(server.post(weather)))
        const stream = yield* Effect.promise(async () => (await server.post({ ...weather, stream: true })).text())
        const [streamed] = checkChatStream(stream).choices
        const [choice] = whole.choices
        assert.strictEqual(choice?.message.content, content)
        assert.strictEqual(choice?.finish_reason, calls.length === 0 ? "stop" : "tool_calls")
        assert.deepStrictEqual(
          (choice?.message.tool_calls ?? []).map((own) => [own.function.name, own.function.arguments]),
          calls.map((own) => [...own])
        )
        if (calls.length === 0) assert.notProperty(choice?.message, "tool_calls")
        assert.strictEqual(streamed?.content, content ?? "")
        assert.strictEqual(streamed?.finishReason, choice?.finish_reason)
        assert.deepStrictEqual(streamed?.toolCalls.map((own) => [own.name, own.arguments]), calls.map((own) => [...own]))
      }))
  }

  it.live("are told as function_call where the request has functions, of which there is one", () =>
    Effect.gen(function*() {
      const functions = tools.map((tool) => tool.function)
      const server = yield* harness({ script: says(call("get_weather", "{\"city\": \"Köln\"}") + call("get_weather", "{}")) })
      const expected = { name: "get_weather", arguments: "{\"city\": \"Köln\"}" }
      for (const fields of [{}, { function_call: "auto" }, { function_call: { name: "get_weather" } }, { parallel_tool_calls: true }]) {
        const body = { messages: user("weather?"), functions, ...fields }
        const [choice] = (yield* Effect.promise(() => answerOf(server.post(body)))).choices
        assert.deepStrictEqual(choice?.message, { role: "assistant", content: null, function_call: expected })
        assert.strictEqual(choice?.finish_reason, "function_call")
        const stream = yield* Effect.promise(async () => (await server.post({ ...body, stream: true })).text())
        const [streamed] = checkChatStream(stream).choices
        assert.deepStrictEqual(streamed?.functionCall, expected)
        assert.strictEqual(streamed?.finishReason, "function_call")
      }
      const none = yield* Effect.promise(() => server.post({ messages: user("weather?"), functions, function_call: "none" }))
      assert.notInclude(yield* Effect.promise(() => none.text()), "function_call")
      const text = yield* harness({ script: says("No call.") })
      const [plain] = (yield* Effect.promise(() => answerOf(text.post({ messages: user("weather?"), functions })))).choices
      assert.deepStrictEqual(plain?.message, { role: "assistant", content: "No call." })
      assert.strictEqual(plain?.finish_reason, "stop")
    }))

  it.live("stream their arguments as they are decoded", () =>
    Effect.gen(function*() {
      const value = "x".repeat(200)
      const output = call("note", `{"value": "${value}"}`)
      const cut = output.indexOf(value) + 100
      const server = yield* harness({
        script: {
          answer: () => ({ tokens: tokensOf(output), fault: { _tag: "Hang", afterTokens: cut } })
        }
      })
      const response = yield* Effect.promise(() => server.post({ ...weather, stream: true }))
      const reader = response.body!.getReader()
      const decoder = new TextDecoder()
      let text = ""
      while ((text.match(/"arguments":"x+"/g) ?? []).join("").replaceAll(/[^x]/g, "").length < 100) {
        text += decoder.decode((yield* Effect.promise(() => reader.read())).value, { stream: true })
      }
      assert.include(text, "\"name\":\"note\"")
      assert.strictEqual(server.engine.running(), 1)
      yield* Effect.promise(() => reader.cancel())
      yield* Effect.promise(() => eventually(() => server.engine.cancelled.length === 1))
    }))

  it.live("need tools in the request, and a choice that is not none", () =>
    Effect.gen(function*() {
      const output = call("get_weather", "{}")
      const server = yield* harness({ script: says(output) })
      for (const body of [{ messages: user("hi") }, { ...weather, tools: [] }, { ...weather, tool_choice: "none" }]) {
        const { choices } = yield* Effect.promise(() => answerOf(server.post(body)))
        assert.strictEqual(choices[0]?.message.content, output)
        assert.strictEqual(choices[0]?.finish_reason, "stop")
      }
    }))

  it.live("come after the reasoning, in which nothing is a call", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says(`I may ${call("a", "{}")}.\n</think>\n\n${call("b", "{}")}`) })
      const stream = yield* Effect.promise(async () => (await server.post({ ...weather, enable_thinking: true, stream: true })).text())
      const [choice] = checkChatStream(stream).choices
      assert.strictEqual(choice?.reasoning, `I may ${call("a", "{}")}.`)
      assert.deepStrictEqual(choice?.toolCalls.map(({ name }) => name), ["b"])
    }))

  it.live("end the answer after the first where parallel ones are off", () =>
    Effect.gen(function*() {
      const output = function*() {
        yield* tokensOf(`Sure.\n${call("a", `{"x": 1}`)}`)
        while (true) yield* tokensOf(`\n${call("b", "{}")}`)
      }
      const server = yield* harness({ script: { answer: () => ({ tokens: output() }) } })
      const body = { ...weather, parallel_tool_calls: false }
      const whole = yield* Effect.promise(() => answerOf(server.post(body)))
      const stream = yield* Effect.promise(async () => (await server.post({ ...body, stream: true })).text())
      const [choice] = checkChatStream(stream).choices
      for (const own of [whole.choices[0]?.message.tool_calls?.map((each) => each.function), choice?.toolCalls]) {
        assert.deepStrictEqual(own?.map((each) => [each.name, each.arguments]), [["a", `{"x": 1}`]])
      }
      assert.strictEqual(choice?.finishReason, "tool_calls")
      assert.strictEqual(whole.choices[0]?.finish_reason, "tool_calls")
      assert.strictEqual(server.engine.cancelled.length, 2)
    }))

  it.live("do not hold stop strings; text does", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says(`a S\n${call("f", `{"x": "STOP"}`)}\nb STOP c`) })
      const stream = yield* Effect.promise(async () => (await server.post({ ...weather, stop: ["STOP", "S\nT"], stream: true })).text())
      const [choice] = checkChatStream(stream.replaceAll("\"finish_reason\":\"stop\"", "\"finish_reason\":\"length\"")).choices
      assert.strictEqual(choice?.content, "a S\nb")
      assert.deepStrictEqual(choice?.toolCalls.map((own) => own.arguments), [`{"x": "STOP"}`])
    }))

  it.live("that the limit cuts keep what there is of them, with length", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says(call("f", `{"value": "${"x".repeat(50)}"}`)) })
      const { choices } = yield* Effect.promise(() => answerOf(server.post({ ...weather, max_tokens: 60 })))
      assert.strictEqual(choices[0]?.finish_reason, "length")
      assert.match(choices[0]?.message.tool_calls?.[0]?.function.arguments ?? "", /^\{"value": "x+$/)
    }))

  it.live("are forgotten with the rest of a run that is repeated", () =>
    Effect.gen(function*() {
      const output = call("f", `{"x": 1}`)
      const server = yield* harness({
        script: {
          answer: (_, index) => ({
            tokens: tokensOf(output),
            ...(index === 0 ? { fault: { _tag: "WorkerLost", afterTokens: output.length - 15 } } : {})
          })
        }
      })
      const { choices } = yield* Effect.promise(() => answerOf(server.post(weather)))
      assert.deepStrictEqual(choices[0]?.message.tool_calls?.map((own) => own.function), [{ name: "f", arguments: `{"x": 1}` }])
    }))
})

describe("several choices", () => {
  const script = {
    answer: ({ seed }: { readonly seed: number }) => ({ tokens: tokensOf(`answer ${seed}${"!".repeat(seed)}`) })
  }

  it.live("have seeds of their own, one prompt and the sum of their tokens", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script })
      const body = yield* Effect.promise(() => answerOf(server.post({ messages: user("hi"), n: 3, seed: 5 })))
      assert.deepStrictEqual(body.choices.map(({ index, message }) => [index, message.content]), [
        [0, "answer 5!!!!!"],
        [1, "answer 6!!!!!!"],
        [2, "answer 7!!!!!!!"]
      ])
      assert.strictEqual(body.usage.prompt_tokens, "user:hi|".length)
      assert.strictEqual(body.usage.completion_tokens, 13 + 14 + 15)
      assert.deepStrictEqual(server.engine.requests.map(({ seed }) => seed), [5, 6, 7])
    }))

  it.live("interleave in a stream, each with its index", () =>
    Effect.gen(function*() {
      const submitted = yield* Deferred.make<void>()
      const delay = Deferred.await(submitted)
      const answer = (request: NativeSubmit, index: number): ScriptedAnswer => {
        if (index === 2) Deferred.doneUnsafe(submitted, Effect.void)
        return { ...script.answer(request), delay }
      }
      const server = yield* harness({ script: { answer } })
      const stream = yield* Effect.promise(async () =>
        (await server.post({ messages: user("hi"), n: 3, seed: 5, stream: true, stream_options: { include_usage: true } })).text()
      )
      const { choices, chunks, usage } = checkChatStream(stream, { choices: 3, includeUsage: true })
      assert.deepStrictEqual(choices.map(({ content }) => content), ["answer 5!!!!!", "answer 6!!!!!!", "answer 7!!!!!!!"])
      assert.strictEqual(usage?.completion_tokens, 13 + 14 + 15)
      const order = chunks.map((chunk) => chunk.choices[0]?.index)
      assert.isBelow(order.indexOf(2), order.lastIndexOf(0))
    }))

  it.live("are refused by name beyond the slots", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: { ...script, model: { slots: 2 } } })
      const response = yield* Effect.promise(() => server.post({ messages: user("hi"), n: 3, seed: 1 }))
      assert.strictEqual(response.status, 400)
      assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, "n")
      assert.strictEqual((yield* Effect.promise(() => answerOf(server.post({ messages: user("hi"), n: 2, seed: 1 })))).choices.length, 2)
    }))

  it.live("free every slot when the client leaves or one of them fails", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: ({ seed, tokens }): ScriptedAnswer =>
            textOf(tokens).includes("fail") && seed === 1
              ? { tokens: [], fault: { _tag: "Failed", afterTokens: 0, code: "out_of_memory", message: "x" } }
              : { tokens: [], fault: { _tag: "Hang", afterTokens: 0 } }
        }
      })
      const failed = yield* Effect.promise(() => server.post({ messages: user("fail"), n: 2, seed: 0 }))
      assert.strictEqual(failed.status, 500)
      const leave = leaving()
      const left = server.post({ messages: user("hi"), n: 3 }, { signal: leave.signal }).catch(() => undefined)
      yield* Effect.promise(() => eventually(() => server.engine.requests.length === 5))
      leave.abort()
      yield* Effect.promise(() => left)
      yield* Effect.promise(() => eventually(() => server.engine.cancelled.length === 4))
      assert.strictEqual(server.engine.running(), 0)
    }))

  it.live("are run again together when the worker was lost", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: {
          answer: ({ seed }, index) => ({
            tokens: tokensOf(`answer ${seed}`),
            ...(index === 1 ? { fault: { _tag: "WorkerLost", afterTokens: 0 } } : {})
          })
        },
        limits: { headMs: 0 }
      })
      const stream = yield* Effect.promise(async () => (await server.post({ messages: user("hi"), n: 2, seed: 1, stream: true })).text())
      const { choices } = checkChatStream(stream, { choices: 2 })
      assert.deepStrictEqual(choices.map(({ content }) => content), ["answer 1", "answer 2"])
    }))
})

describe("while nothing is said", () => {
  it.live("prefill progress comes in chunks, where it was asked for", () =>
    Effect.gen(function*() {
      const server = yield* harness({ script: says("ok") })
      const stream = yield* Effect.promise(async () =>
        (await server.post({ messages: user("hi"), stream: true, return_progress: true })).text()
      )
      const { choices, progress } = checkChatStream(stream)
      const total = "user:hi|".length
      assert.isAbove(progress.length, 0)
      for (const own of progress) assert.strictEqual(own.total, total)
      assert.deepStrictEqual(
        progress.map(({ processed }) => processed),
        progress.map(({ processed }) => processed).toSorted((a, b) => a - b)
      )
      assert.strictEqual(progress.at(-1)?.processed, total)
      assert.strictEqual(choices[0]?.content, "ok")
      const plain = yield* Effect.promise(async () => (await server.post({ messages: user("hi"), stream: true })).text())
      assert.strictEqual(checkChatStream(plain).progress.length, 0)
    }))

  it.live("a request that waits for its slot gets comments too", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: [], fault: { _tag: "Hang", afterTokens: 0 } }) },
        settings: { slots: 1 },
        limits: { headMs: 1, keepAliveMs: 5 }
      })
      const stop = leaving()
      const first = server.post({ messages: user("hold"), stream: true }, { signal: stop.signal }).catch(() => undefined)
      yield* Effect.promise(() => eventually(() => server.engine.requests.length === 1))
      const response = yield* Effect.promise(() => server.post({ messages: user("waits"), stream: true }, { signal: stop.signal }))
      const reader = response.body!.getReader()
      let text = ""
      while (events(text).filter((event) => event === ": keep-alive").length < 2) {
        text += new TextDecoder().decode((yield* Effect.promise(() => reader.read())).value)
      }
      assert.strictEqual(server.engine.requests.length, 1)
      stop.abort()
      yield* Effect.promise(() => first)
    }))
})
