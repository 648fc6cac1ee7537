import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ResponseObject } from "../../../schema/openai/Responses.ts"
import { serverSentEvents } from "../../../src/dialect/EventFraming.ts"
import { type Echo, eventsOf, itemId, type ResponseHead } from "../../../src/dialect/OpenAiResponsesOutput.ts"
import { ResponseStream } from "../../../src/dialect/OpenAiResponsesStream.ts"
import { type Fields, ToolSet } from "../../../src/dialect/OpenAiResponsesTools.ts"
import * as ReasoningCarrier from "../../../src/dialect/ReasoningCarrier.ts"
import { EngineError, RequestRefused } from "../../../src/domain/Errors.ts"
import { OutputCollector } from "../../../src/domain/Output.ts"
import type { Finish, OutputDelta, OutputEvent } from "../../../src/domain/OutputEvent.ts"
import { checkResponsesStream } from "../../support/ResponsesStreamChecker.ts"

const echo: Echo = {
  model: undefined,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: true,
  temperature: 0,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  truncation: "disabled",
  user: null
}

const head: ResponseHead = { id: "resp_0123abcd", created: 1_700_000_000, model: "m", echo }

const finish = (reason: Finish["reason"] = "stop"): Finish => ({
  _tag: "Finish",
  reason,
  usage: {
    promptTokens: 10,
    cachedTokens: 4,
    completionTokens: 6,
    reasoningTokens: 2,
    queueMs: 0,
    promptMs: 1,
    generationMs: 1
  }
})

const text = (value: string): OutputDelta => ({ _tag: "Text", text: value })
const reasoning = (value: string): OutputDelta => ({ _tag: "Reasoning", text: value })
const call = (index: number, name: string): OutputDelta => ({ _tag: "ToolCall", index, id: `call_${index}`, name })
const args = (index: number, value: string): OutputDelta => ({ _tag: "ToolArguments", index, text: value })

const tools = (given: ReadonlyArray<Fields>) => {
  const set = new ToolSet()
  assert.ok(Result.isSuccess(set.add(given, "tools")))
  return set
}

const given = tools([
  { type: "function", name: "f" },
  { type: "namespace", name: "ns", tools: [{ type: "function", name: "f" }, { type: "custom", name: "exec" }] },
  { type: "custom", name: "apply_patch" }
])

const make = (options: { readonly summary?: boolean; readonly sealed?: boolean } = {}) => {
  const ended: Array<ResponseObject> = []
  const stream = new ResponseStream({
    framing: serverSentEvents,
    head,
    tools: given,
    reasoning: { summary: options.summary ?? false, sealed: options.sealed ?? false },
    onEnd: (response) => ended.push(response)
  })
  return { stream, ended }
}

const run = (events: ReadonlyArray<OutputEvent>, options?: Parameters<typeof make>[0]) => {
  const { ended, stream } = make(options)
  const frames = events.map((event) => stream.event(event))
  const checked = checkResponsesStream(stream.start() + frames.join(""))
  assert.deepStrictEqual(ended, [checked.response])
  return checked
}

const typesOf = ({ events }: ReturnType<typeof run>) => events.map((event) => event.type.replace("response.", ""))

describe("the stream of a response", () => {
  it("text", () => {
    const checked = run([text("Hel"), text("lo"), finish()])
    assert.deepStrictEqual(typesOf(checked), [
      "created",
      "in_progress",
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "completed"
    ])
    assert.deepStrictEqual(checked.response.usage, {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 6,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 16,
      timings: { agent_turn_cache_hit: false, cached_prefix_tokens: 4, prefilled_tokens: 6 }
    })
  })

  it("a message is first, then the calls, though the model wrote no text", () => {
    const checked = run([call(0, "f"), args(0, "{\"a\""), args(0, ":1}"), call(1, "f"), args(1, "{}"), finish("tool_calls")])
    assert.deepStrictEqual(typesOf(checked), [
      "created",
      "in_progress",
      "output_item.added",
      "content_part.added",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
      "completed"
    ])
    assert.deepStrictEqual(checked.response.output.slice(1), [
      { id: "fc_0123abcd01", type: "function_call", call_id: "call_0", name: "f", status: "completed", arguments: "{\"a\":1}" },
      { id: "fc_0123abcd02", type: "function_call", call_id: "call_1", name: "f", status: "completed", arguments: "{}" }
    ])
  })

  it("calls go by the client's names: a namespace echoed, a custom tool with its raw input", () => {
    const input = "*** Begin Patch\n+\"hi\"\n"
    const json = JSON.stringify({ input })
    const { events, response } = run([
      text("I patch."),
      call(0, "ns__f"),
      args(0, "{}"),
      call(1, "apply_patch"),
      args(1, json.slice(0, 20)),
      args(1, json.slice(20)),
      call(2, "ns__exec"),
      args(2, "not json"),
      finish("tool_calls")
    ])
    assert.deepStrictEqual(response.output.slice(1), [
      {
        id: "fc_0123abcd01",
        type: "function_call",
        call_id: "call_0",
        name: "f",
        namespace: "ns",
        status: "completed",
        arguments: "{}"
      },
      { id: "ctc_0123abcd02", type: "custom_tool_call", call_id: "call_1", name: "apply_patch", status: "completed", input },
      {
        id: "ctc_0123abcd03",
        type: "custom_tool_call",
        call_id: "call_2",
        name: "exec",
        namespace: "ns",
        status: "completed",
        input: "not json"
      }
    ])
    assert.isAbove(events.filter((event) => event.type === "response.custom_tool_call_input.delta").length, 2)
  })

  it("reasoning as content or as summary, sealed where asked for", () => {
    const events = [reasoning("hm"), reasoning(" so"), text("Yes"), finish()]
    const content = run(events)
    assert.deepStrictEqual(content.response.output[0], {
      id: "rs_0123abcd00",
      type: "reasoning",
      status: "completed",
      summary: [],
      content: [{ type: "reasoning_text", text: "hm so" }]
    })
    const summary = run(events, { summary: true, sealed: true })
    assert.deepStrictEqual(summary.response.output[0], {
      id: "rs_0123abcd00",
      type: "reasoning",
      status: "completed",
      summary: [{ type: "summary_text", text: "hm so" }],
      encrypted_content: ReasoningCarrier.seal("hm so")
    })
    assert.deepStrictEqual(typesOf(summary).slice(2, 8), [
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done"
    ])
  })

  it("text after a call is a message of its own", () => {
    const { response } = run([text("a"), call(0, "f"), args(0, "{}"), text("b"), finish("tool_calls")])
    assert.deepStrictEqual(response.output.map((item) => item.type), ["message", "function_call", "message"])
  })

  it("an empty answer is an empty message; reasoning that ran out of room stands alone", () => {
    assert.deepStrictEqual(run([finish()]).response.output.map((item) => item.type), ["message"])
    assert.deepStrictEqual(run([finish("length")]).response.output.map((item) => item.status), ["incomplete"])
    assert.deepStrictEqual(run([reasoning("hm"), finish()]).response.output.map((item) => item.type), ["reasoning", "message"])
    const cut = run([reasoning("hm"), finish("length")]).response
    assert.deepStrictEqual(cut.output.map(({ status, type }) => [type, status]), [["reasoning", "incomplete"]])
    assert.deepStrictEqual(cut.incomplete_details, { reason: "max_output_tokens" })
  })

  it("a call that ran out of room is incomplete, with the arguments so far", () => {
    const { response } = run([text("a"), call(0, "f"), args(0, "{\"a"), finish("length")])
    const last = response.output[1]
    assert.ok(last?.type === "function_call")
    assert.deepStrictEqual([last.status, last.arguments], ["incomplete", "{\"a"])
    const custom = run([call(0, "apply_patch"), args(0, "{\"input\":\"abc\\"), finish("length")]).response.output[1]
    assert.ok(custom?.type === "custom_tool_call")
    assert.strictEqual(custom.input, "abc")
  })

  it("log probabilities come with their text", () => {
    const scored = (letter: string, logprob: number) => ({ token: letter.charCodeAt(0), bytes: new TextEncoder().encode(letter), logprob })
    const { events, response } = run([
      { _tag: "Text", text: "a", logprobs: [{ ...scored("a", -0.5), top: [scored("a", -0.5), scored("b", -Infinity)] }] },
      finish()
    ])
    const wire = (token: string, logprob: number) => ({ token, bytes: [token.charCodeAt(0)], logprob })
    const expected = [{ ...wire("a", -0.5), top_logprobs: [wire("a", -0.5), wire("b", -9999)] }]
    const [message] = response.output
    assert.deepStrictEqual(message?.type === "message" ? message.content[0]?.logprobs : [], expected)
    assert.strictEqual(events.filter((event) => event.type === "response.output_text.delta").length, 1)
  })

  it("keep-alive repeats response.in_progress and takes part in the numbering", () => {
    const { stream } = make()
    const body = stream.start() + stream.keepAlive() + stream.keepAlive() + stream.event(text("a")) + stream.keepAlive() +
      stream.event(finish())
    assert.strictEqual(checkResponsesStream(body).events.filter((event) => event.type === "response.in_progress").length, 4)
  })

  it("begins again after a reset, where only keep-alives were sent", () => {
    const { ended, stream } = make()
    const sent = stream.start() + stream.keepAlive()
    stream.event(reasoning("lost"))
    stream.event(call(0, "f"))
    stream.reset()
    const { response } = checkResponsesStream(sent + stream.event(text("kept")) + stream.event(finish()))
    assert.deepStrictEqual(response.output.map((item) => item.id), ["msg_0123abcd00"])
    assert.strictEqual(ended.length, 1)
  })

  it("a failure is response.failed with what there was, and nothing inside leaks", () => {
    for (
      const error of [
        new EngineError({ reason: "WorkerLost", message: "killed at /secret/path" }),
        new EngineError({ reason: "Internal", message: "0xdeadbeef" }),
        new RequestRefused({ reason: "Defect", message: "Server error: the request failed inside the server." })
      ]
    ) {
      const { ended, stream } = make()
      const body = stream.start() + stream.event(text("so far")) + stream.error(error)
      const { response } = checkResponsesStream(body)
      assert.strictEqual(response.status, "failed")
      assert.match(response.error?.message ?? "", /^Server error/)
      assert.notInclude(body, "secret")
      assert.notInclude(body, "deadbeef")
      assert.deepStrictEqual(response.output.map((item) => item.status), ["incomplete"])
      assert.deepStrictEqual(ended, [])
    }
  })

  it("hostile text stays inside its frame", () => {
    const { response } = run([text("a\n\ndata: x\r\n\u2028\u0000\ud800"), finish()])
    const [message] = response.output
    assert.strictEqual(message?.type === "message" ? message.content[0]?.text : "", "a\n\ndata: x\r\n\u2028\u0000\ud800")
  })

  it("an answer in one body equals the streamed one", () => {
    const deltas = [reasoning("hm"), text("a"), text("b"), call(0, "ns__f"), args(0, "{"), args(0, "}"), call(1, "apply_patch")]
    const collector = new OutputCollector()
    for (const delta of deltas) collector.add(delta)
    const last = finish("tool_calls")
    const { ended, stream } = make()
    for (const event of eventsOf(collector, last)) stream.event(event)
    assert.deepStrictEqual(ended, [run([...deltas, last]).response])
  })
})

describe("itemId", () => {
  it("is another one for every index", () => {
    const ids = Array.from({ length: 1000 }, (_, index) => itemId("resp_ab", "msg", index))
    assert.strictEqual(new Set(ids).size, 1000)
    assert.match(ids[0]!, /^msg_ab00$/)
  })
})
