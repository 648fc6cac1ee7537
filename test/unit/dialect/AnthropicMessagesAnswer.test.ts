import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Message } from "../../../schema/anthropic/Message.ts"
import { type AnswerHead, message, MessageStream } from "../../../src/dialect/AnthropicMessagesAnswer.ts"
import * as ReasoningCarrier from "../../../src/dialect/ReasoningCarrier.ts"
import { EngineError } from "../../../src/domain/Errors.ts"
import { OutputCollector } from "../../../src/domain/Output.ts"
import type { Finish, OutputDelta } from "../../../src/domain/OutputEvent.ts"
import { checkMessagesStream } from "../../support/MessagesStreamChecker.ts"

const head: AnswerHead = { id: "msg_1", model: "demo", omitThinking: false, returnProgress: false }

const usage = { promptTokens: 12, cachedTokens: 5, completionTokens: 7, queueMs: 1, promptMs: 2, generationMs: 3 }
const finish = (fields: Partial<Finish> = {}): Finish => ({ _tag: "Finish", reason: "stop", usage, ...fields })

const text = (value: string): OutputDelta => ({ _tag: "Text", text: value })
const reasoning = (value: string): OutputDelta => ({ _tag: "Reasoning", text: value })
const call = (index: number, name: string): OutputDelta => ({ _tag: "ToolCall", index, id: `call_${index}`, name })
const args = (index: number, value: string): OutputDelta => ({ _tag: "ToolArguments", index, text: value })

const streamed = (deltas: ReadonlyArray<OutputDelta>, end: Finish = finish(), own: AnswerHead = head) => {
  const stream = new MessageStream(own, 12)
  return checkMessagesStream(stream.start() + deltas.map((delta) => stream.event(delta)).join("") + stream.event(end))
}

const whole = (deltas: ReadonlyArray<OutputDelta>, end: Finish = finish(), own: AnswerHead = head) => {
  const output = new OutputCollector()
  for (const delta of deltas) output.add(delta)
  return Schema.decodeUnknownSync(Message)(JSON.parse(message(own, output, end)))
}

const everything = [
  reasoning("let me "),
  reasoning("think\n\"<"),
  text("I will "),
  text("look. ✓"),
  call(0, "weather"),
  args(0, "{\"city\""),
  args(0, ":\"Rom\"}"),
  call(1, "weather"),
  args(1, "{}")
]

describe("an answer", () => {
  it("has the same blocks streamed and whole", () => {
    for (const own of [head, { ...head, omitThinking: true }]) {
      const expected = whole(everything, finish({ reason: "tool_calls" }), own)
      const actual = streamed(everything, finish({ reason: "tool_calls" }), own)
      assert.deepStrictEqual(actual.content, expected.content)
      assert.strictEqual(actual.stopReason, "tool_use")
      assert.strictEqual(expected.stop_reason, "tool_use")
    }
    assert.deepStrictEqual(whole(everything).content, [
      { type: "thinking", thinking: "let me think\n\"<", signature: ReasoningCarrier.plain },
      { type: "text", text: "I will look. ✓" },
      { type: "tool_use", id: "toolu_0", name: "weather", input: { city: "Rom" } },
      { type: "tool_use", id: "toolu_1", name: "weather", input: {} }
    ])
  })

  it("carries omitted thinking in the signature alone", () => {
    const { content, events } = streamed(everything, finish(), { ...head, omitThinking: true })
    const [block] = content
    assert(block?.type === "thinking")
    assert.strictEqual(block.thinking, "")
    assert.strictEqual(ReasoningCarrier.open(block.signature), "let me think\n\"<")
    assert.isFalse(JSON.stringify(events).includes("let me"))
  })

  it("says why it ended", () => {
    const cases: ReadonlyArray<readonly [Partial<Finish>, string, string | null]> = [
      [{ reason: "stop" }, "end_turn", null],
      [{ reason: "length" }, "max_tokens", null],
      [{ reason: "tool_calls" }, "tool_use", null],
      [{ reason: "stop", stopString: "X\n" }, "stop_sequence", "X\n"]
    ]
    for (const [fields, reason, sequence] of cases) {
      const { stop_reason, stop_sequence } = whole([text("a")], finish(fields))
      assert.deepStrictEqual([stop_reason, stop_sequence], [reason, sequence])
      assert.strictEqual(streamed([text("a")], finish(fields)).stopReason, reason)
    }
  })

  it("counts cached tokens apart, with timings beside them", () => {
    assert.deepStrictEqual(whole([text("a")]).usage, {
      input_tokens: 7,
      cache_read_input_tokens: 5,
      cache_creation_input_tokens: 0,
      output_tokens: 7,
      timings: {
        prompt_n: 7,
        prompt_ms: 2,
        prompt_per_second: 3500,
        predicted_n: 7,
        predicted_ms: 3,
        predicted_per_second: 2000,
        cache_n: 5,
        queue_ms: 1,
        agent_turn_cache_hit: false,
        cached_prefix_tokens: 5,
        prefilled_tokens: 7
      }
    })
    const { events, inputTokens, outputTokens } = streamed([text("a")])
    assert.deepStrictEqual([inputTokens, outputTokens], [12, 7])
    const [start] = events
    assert(start?.type === "message_start")
    assert.deepStrictEqual(start.message.usage, {
      input_tokens: 12,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      output_tokens: 0
    })
  })

  it("has one empty text block where there is no output", () => {
    assert.deepStrictEqual(whole([]).content, [{ type: "text", text: "" }])
    assert.deepStrictEqual(streamed([]).content, [{ type: "text", text: "" }])
    assert.deepStrictEqual(whole([call(0, "a")]).content, [{ type: "tool_use", id: "toolu_0", name: "a", input: {} }])
  })

  it("keeps ids that are not its own", () => {
    const [block] = whole([{ _tag: "ToolCall", index: 0, id: "Ab3dE6gH9", name: "a" }]).content
    assert(block?.type === "tool_use")
    assert.strictEqual(block.id, "Ab3dE6gH9")
  })

  it("hands arguments that are no object to the tool as they are", () => {
    for (const value of ["{\"city\": ", "[1]", "5", "null", "\"x\""]) {
      const [block] = whole([call(0, "a"), args(0, value)]).content
      assert(block?.type === "tool_use")
      assert.deepStrictEqual(block.input, { INVALID_JSON: value })
    }
  })

  it("opens a block for every change of kind", () => {
    assert.deepStrictEqual(streamed([text("a"), call(0, "x"), args(0, "{}"), text("b"), reasoning("c"), text("d")]).grammar, [
      "message_start",
      "start text",
      "text_delta",
      "content_block_stop",
      "start tool_use",
      "input_json_delta",
      "content_block_stop",
      "start text",
      "text_delta",
      "content_block_stop",
      "start thinking",
      "thinking_delta",
      "signature_delta",
      "content_block_stop",
      "start text",
      "text_delta",
      "content_block_stop",
      "message_delta",
      "message_stop"
    ])
  })
})

describe("a stream", () => {
  it("begins again with the first block when nothing of it was sent", () => {
    const stream = new MessageStream({ ...head, omitThinking: true }, 12)
    const start = stream.start()
    stream.event(reasoning("lost"))
    stream.event(text("lost"))
    stream.reset()
    const body = start + stream.event(reasoning("kept")) + stream.event(text("kept")) + stream.event(finish())
    const [thinking, answer] = checkMessagesStream(body).content
    assert.deepStrictEqual(thinking, { type: "thinking", thinking: "", signature: ReasoningCarrier.seal("kept") })
    assert.deepStrictEqual(answer, { type: "text", text: "kept" })
  })

  it("ends in an error event, with pings anywhere before", () => {
    const stream = new MessageStream(head, 12)
    const error = stream.error(new EngineError({ reason: "Internal", message: "/secret/path" }))
    const checked = checkMessagesStream(stream.start() + stream.keepAlive() + stream.event(text("a")) + stream.keepAlive() + error)
    assert.strictEqual(checked.error, "Server error: the engine failed on this request.")
    assert.include(error, "\"type\":\"api_error\"")
    assert.include(error, "\"request_id\":\"msg_1\"")
  })
})

describe("the checker", () => {
  const stream = () => new MessageStream(head, 1)
  const start = stream().start()
  const full = () => {
    const own = stream()
    return own.start() + own.event(text("a")) + own.event(finish())
  }
  const without = (name: string) => full().split("\n\n").filter((frame) => !frame.startsWith(`event: ${name}\n`)).join("\n\n")

  it("takes no stream that lacks a part", () => {
    for (const name of ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"]) {
      assert.throws(() => checkMessagesStream(without(name)), /Messages stream/, name)
    }
    assert.throws(() => checkMessagesStream(start))
    assert.throws(() => checkMessagesStream(full() + full()))
    assert.throws(() => checkMessagesStream(full().replaceAll("event: ", "")))
    assert.throws(() => checkMessagesStream(full().replace("\"index\":0", "\"index\":1")))
    assert.throws(() => checkMessagesStream(`${full()}data: [DONE]\n\n`))
    assert.doesNotThrow(() => checkMessagesStream(full()))
  })
})
