import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { ChatCompletionChunk } from "../../../schema/openai/Chat.ts"
import * as OpenAiChat from "../../../src/dialect/OpenAiChat.ts"
import { chunks as chatChunks } from "../../../src/dialect/OpenAiChatAnswer.ts"
import { parse } from "../../../src/dialect/WireRequest.ts"
import { EngineError } from "../../../src/domain/Errors.ts"
import type { GenerationRequest } from "../../../src/domain/GenerationRequest.ts"
import type { Finish } from "../../../src/domain/OutputEvent.ts"
import { greedy } from "../../../src/domain/Sampling.ts"

const context = { tenant: "t", session: undefined, randomSeed: 77 }

const conversationOf = ({ prompt }: GenerationRequest) => {
  assert(prompt._tag === "Chat")
  return prompt.conversation
}

const decode = (body: object) => {
  const wire = Result.getOrThrow(parse(JSON.stringify(body)))
  return Result.getOrThrow(OpenAiChat.decode(wire, context))
}

const messages = [{ role: "user", content: "hi" }]
const decodeWith = (fields: object) => decode({ messages, ...fields })

describe("decode", () => {
  it("applies every default", () => {
    assert.deepStrictEqual(decode({ messages }), {
      request: {
        model: undefined,
        prompt: {
          _tag: "Chat",
          conversation: { messages: [{ role: "user", content: "hi" }], tools: [], templateVariables: { enable_thinking: false } }
        },
        sampling: { ...greedy, seed: 77 },
        maxTokens: undefined,
        stopStrings: [],
        tenant: "t",
        session: undefined
      },
      stream: false,
      asFunctions: false,
      includeUsage: false,
      continuousUsage: false,
      returnProgress: false,
      ignored: []
    })
  })

  it("prefers the newer and the more specific of two names", () => {
    assert.strictEqual(decodeWith({ max_tokens: 1, max_output_tokens: 2, max_completion_tokens: 3 }).request.maxTokens, 3)
    assert.strictEqual(decodeWith({ max_tokens: 1, max_output_tokens: 2 }).request.maxTokens, 1)
    assert.strictEqual(decodeWith({ max_output_tokens: 2 }).request.maxTokens, 2)
    assert.strictEqual(decodeWith({ rep_pen: 1.5 }).request.sampling.repetitionPenalty, 1.5)
    assert.strictEqual(decodeWith({ rep_pen: 1.5, repetition_penalty: 1.25 }).request.sampling.repetitionPenalty, 1.25)
    assert.deepStrictEqual(decodeWith({ stop_sequences: ["a"] }).request.stopStrings, ["a"])
    assert.deepStrictEqual(decodeWith({ stop: "b", stop_sequences: ["a"] }).request.stopStrings, ["b"])
  })

  it("turns every way to ask for thinking into template variables", () => {
    const variables = (fields: object) => conversationOf(decodeWith(fields).request).templateVariables
    assert.deepStrictEqual(variables({ enable_thinking: true }), { enable_thinking: true })
    assert.deepStrictEqual(variables({ reasoning_effort: "high" }), { enable_thinking: true, reasoning_effort: "high" })
    assert.deepStrictEqual(variables({ reasoning: { effort: "low" } }), { enable_thinking: true, reasoning_effort: "low" })
    assert.deepStrictEqual(variables({ reasoning_effort: "none", reasoning: { effort: "low" } }), { enable_thinking: false })
    assert.deepStrictEqual(variables({ enable_thinking: false, reasoning_effort: "high" }), {
      enable_thinking: false,
      reasoning_effort: "high"
    })
    assert.deepStrictEqual(
      variables({ enable_thinking: false, chat_template_kwargs: { enable_thinking: true, preserve_thinking: false } }),
      {
        enable_thinking: true,
        preserve_thinking: false
      }
    )
  })

  it("keeps requests from replacing the conversation, and says so", () => {
    const decoded = decodeWith({ chat_template_kwargs: { messages: [], bos_token: "x", deep: 1 }, user: "u", extra: true })
    assert.deepStrictEqual(conversationOf(decoded.request).templateVariables, { enable_thinking: false, deep: 1 })
    assert.deepStrictEqual(decoded.ignored, ["user", "extra", "chat_template_kwargs.messages", "chat_template_kwargs.bos_token"])
  })

  it("puts no field name into a header that a header cannot carry", () => {
    assert.deepStrictEqual(decodeWith({ "a\r\nb": 1, "ü": 2, ["x".repeat(100)]: 3, fine: 4 }).ignored, ["fine"])
  })

  it("takes signed seeds and draws one for -1", () => {
    assert.strictEqual(decodeWith({ seed: 0 }).request.sampling.seed, 0)
    assert.strictEqual(decodeWith({ seed: -1 }).request.sampling.seed, 77)
    for (const seed of [-2, -Number.MAX_SAFE_INTEGER]) {
      const own = decodeWith({ seed }).request.sampling.seed
      assert.isTrue(Number.isSafeInteger(own) && own >= 0, String(own))
    }
  })

  it("keeps the history of calls, results and thinking", () => {
    const call = { id: "c1", type: "function", function: { name: "f", arguments: "{\"b\":1,\"a\":2}" } }
    const decoded = decode({
      messages: [
        { role: "system", content: [{ type: "text", text: "s" }] },
        { role: "user", content: "q", name: "ann" },
        { role: "assistant", content: null, reasoning_content: "why", tool_calls: [call] },
        { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "r1" }, { type: "text", text: "r2" }] },
        { role: "function", name: "f", content: "r3" },
        { role: "assistant", content: "done", tool_calls: [] },
        { role: "assistant" }
      ]
    })
    assert.deepStrictEqual(conversationOf(decoded.request).messages, [
      { role: "system", content: "s" },
      { role: "user", content: "q", name: "ann" },
      {
        role: "assistant",
        content: null,
        reasoning: "why",
        toolCalls: [{ id: "c1", name: "f", arguments: "{\"b\":1,\"a\":2}" }]
      },
      { role: "tool", toolCallId: "c1", content: "r1r2" },
      { role: "tool", toolCallId: "", name: "f", content: "r3" },
      { role: "assistant", content: "done" },
      { role: "assistant", content: null }
    ])
  })
})

describe("ignored fields", () => {
  it("are named with their paths, and those that act are not", () => {
    const { ignored } = decodeWith({
      user: "u",
      store: true,
      metadata: {},
      prompt_cache_key: "k",
      parallel_tool_calls: true,
      return_progress: true,
      modalities: ["text"],
      stream: true,
      stream_options: { include_usage: false, include_obfuscation: false, continuous_usage_stats: true },
      reasoning: { effort: "low", summary: "auto" },
      tools: [{ type: "web_search" }]
    })
    assert.deepStrictEqual(ignored, [
      "user",
      "store",
      "metadata",
      "stream_options.include_obfuscation",
      "stream_options.continuous_usage_stats",
      "reasoning.summary",
      "tools.0"
    ])
  })
})

describe("media", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
  const refuse = (messages: ReadonlyArray<object>) => {
    const result = OpenAiChat.decode(Result.getOrThrow(parse(JSON.stringify({ messages }))), context)
    assert(Result.isFailure(result))
    return result.failure
  }

  it("are refused by name in the user's newest turn", () => {
    for (const part of [image, { type: "input_audio" }, { type: "file" }, { type: "unheard_of" }]) {
      const error = refuse([{ role: "user", content: "a" }, { role: "user", content: [{ type: "text", text: "b" }, part] }])
      assert.deepInclude(error, { _tag: "UnsupportedFeature", field: "messages.1.content.1" })
    }
  })

  it("leave a note in history and in results of tools", () => {
    const { messages } = conversationOf(
      decode({
        messages: [
          { role: "user", content: [{ type: "text", text: "see " }, image] },
          { role: "assistant", content: null, tool_calls: [{ id: "c", function: { name: "f" } }] },
          { role: "tool", tool_call_id: "c", content: [image, { type: "input_audio" }, { type: "odd" }] }
        ]
      }).request
    )
    assert.deepStrictEqual(messages.map(({ content }) => content), [
      "see [image omitted: this model reads only text]",
      null,
      "[image omitted: this model reads only text][audio omitted: this model reads only text][part omitted: this model reads only text]"
    ])
  })
})

describe("tools", () => {
  const tool = (name: string, more: object = {}) => ({ type: "function", function: { name, ...more } })
  const tools = (fields: object) => conversationOf(decodeWith(fields).request).tools
  const refusal = (fields: object) => {
    const result = OpenAiChat.decode(Result.getOrThrow(parse(JSON.stringify({ messages, ...fields }))), context)
    assert(Result.isFailure(result))
    return result.failure
  }

  it("keep the order of their parameters' keys", () => {
    const parameters = { type: "object", properties: { zulu: { type: "string" }, alpha: { type: "number" } }, required: ["zulu"] }
    const [own] = tools({ tools: [tool("f", { description: "d", parameters })] })
    assert.strictEqual(JSON.stringify(own), JSON.stringify({ name: "f", description: "d", parameters }))
  })

  it("take functions without parameters, flat ones, and none at all", () => {
    assert.deepStrictEqual(tools({ tools: [tool("f"), { type: "function", name: "g", parameters: null }, { function: { name: "h" } }] }), [
      { name: "f" },
      { name: "g" },
      { name: "h" }
    ])
    assert.deepStrictEqual(tools({ tools: [] }), [])
    assert.deepStrictEqual(tools({ tools: [tool("f")], tool_choice: "none" }), [])
    assert.deepStrictEqual(tools({ tools: [tool("f")], tool_choice: { type: "auto" } }), [{ name: "f" }])
  })

  it("of an unknown type are ignored by their place", () => {
    const decoded = decodeWith({ tools: [{ type: "web_search" }, tool("f"), { type: "custom", custom: { name: "x" } }] })
    assert.deepStrictEqual(decoded.ignored, ["tools.0", "tools.2"])
    assert.deepStrictEqual(conversationOf(decoded.request).tools, [{ name: "f" }])
  })

  it("that have to be enforced are refused by name", () => {
    const table: ReadonlyArray<readonly [object, string]> = [
      [{ response_format: { type: "grammar" } }, "response_format.type"],
      [{ modalities: ["text", "audio"] }, "modalities"]
    ]
    for (const [fields, field] of table) {
      assert.deepInclude(refusal(fields), { _tag: "UnsupportedFeature", field }, JSON.stringify(fields))
    }
    assert.deepInclude(refusal({ tools: [tool("f")], tool_choice: "maybe" }), { _tag: "InvalidRequest", field: "tool_choice" })
    assert.deepInclude(refusal({ tools: [tool("")] }), { _tag: "InvalidRequest", field: "tools.0.function.name" })
    assert.deepInclude(refusal({ tools: [{ type: "function" }] }), { _tag: "InvalidRequest", field: "tools.0.name" })
  })

  it("come as functions too, with at most one call", () => {
    const functions = [{ name: "f", description: "d", parameters: { type: "object" } }, { name: "g" }]
    const decoded = decodeWith({ functions, parallel_tool_calls: true })
    assert.deepStrictEqual(conversationOf(decoded.request).tools, functions)
    assert.isTrue(decoded.asFunctions)
    assert.isFalse(decoded.request.parallelToolCalls)
    assert.isUndefined(decoded.request.toolChoice)
    assert.deepStrictEqual(decoded.ignored, [])
    assert.deepStrictEqual(tools({ functions, function_call: "none" }), [])
    assert.isUndefined(decodeWith({ functions, function_call: "auto" }).request.toolChoice)
    assert.deepStrictEqual(decodeWith({ functions, function_call: { name: "g" } }).request.toolChoice, {
      required: true,
      names: ["g"],
      once: true,
      field: "function_call"
    })
    assert.isFalse(decodeWith({ functions: [], tools: [tool("f")], function_call: "auto" }).asFunctions)
    const refusals: ReadonlyArray<readonly [object, string]> = [
      [{ functions, tools: [tool("f")] }, "functions"],
      [{ functions: [{ description: "no name" }] }, "functions.0.name"],
      [{ functions: ["f"] }, "functions.0"],
      [{ functions, function_call: "required" }, "function_call"],
      [{ functions, function_call: { name: "h" } }, "function_call"],
      [{ functions, function_call: { name: 5 } }, "function_call.name"],
      [{ function_call: { name: "f" } }, "function_call"],
      [{ functions, function_call: 5 }, "function_call"]
    ]
    for (const [fields, field] of refusals) {
      assert.deepInclude(refusal(fields), { _tag: "InvalidRequest", field }, JSON.stringify(fields))
    }
  })

  it("may be limited to one call", () => {
    assert.isFalse(decodeWith({ parallel_tool_calls: false }).request.parallelToolCalls)
    assert.isTrue(decodeWith({ parallel_tool_calls: true }).request.parallelToolCalls)
  })

  it("of earlier turns come in every form that clients send", () => {
    const { messages } = conversationOf(
      decode({
        messages: [
          { role: "user", content: "q" },
          {
            role: "assistant",
            reasoning: "why",
            tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: { b: 1, a: 2 } } }]
          },
          { role: "tool", tool_call_id: "c", content: null },
          { role: "assistant", content: "", reasoning_content: "", function_call: { name: "g", arguments: "{}" } },
          { role: "function", name: "g", content: "r" }
        ]
      }).request
    )
    assert.deepStrictEqual(messages, [
      { role: "user", content: "q" },
      { role: "assistant", content: null, reasoning: "why", toolCalls: [{ id: "c", name: "f", arguments: "{\"b\":1,\"a\":2}" }] },
      { role: "tool", toolCallId: "c", content: "" },
      { role: "assistant", content: "", reasoning: "", toolCalls: [{ id: "", name: "g", arguments: "{}" }] },
      { role: "tool", toolCallId: "", name: "g", content: "r" }
    ])
  })
})

describe("chunks", () => {
  const head = { id: "chatcmpl-\"1", created: 5, model: "m\n\u2028" }
  const finish: Finish = {
    _tag: "Finish",
    reason: "length",
    usage: { promptTokens: 10, cachedTokens: 4, completionTokens: 3, queueMs: 1, promptMs: 50, generationMs: 100 }
  }
  const withUsage = () => chatChunks(head, { choices: 1, includeUsage: true, usageOf: undefined, returnProgress: false })
  const data = (frames: string) =>
    frames.split("\n\n").filter((frame) => frame.startsWith("data: {")).map((frame) => JSON.parse(frame.slice(6)))

  it("are what a JSON encoder of the schema would write", () => {
    const encoder = withUsage()
    const text = "a\"\\\n\r\u0000\u2028\u{1f600}\ud800 </script>"
    const frames = encoder.start() + encoder.event({ _tag: "Reasoning", text }) + encoder.event({ _tag: "Text", text }) +
      encoder.event(finish) + encoder.end?.([finish])
    const chunks = data(frames)
    for (const chunk of chunks) Schema.decodeUnknownSync(ChatCompletionChunk)(chunk)
    const deltas = chunks.map((chunk) => chunk.choices[0]?.delta)
    assert.deepStrictEqual(deltas, [{ role: "assistant", content: "" }, { reasoning_content: text }, { content: text }, {}, undefined])
    for (const chunk of chunks) assert.deepInclude(chunk, { id: head.id, created: 5, model: head.model, object: "chat.completion.chunk" })
    assert.isTrue(frames.endsWith("data: [DONE]\n\n"))
    assert.isFalse(/[^\n]\n[^\n]/.test(frames), "a frame is one line")
  })

  it("carry the timings of llama-server and OpenAI's usage", () => {
    const [last, usage] = data(withUsage().event(finish) + withUsage().end?.([finish]))
    assert.strictEqual(last.choices[0].finish_reason, "length")
    assert.deepStrictEqual(last.timings, {
      prompt_n: 6,
      prompt_ms: 50,
      prompt_per_second: 120,
      predicted_n: 3,
      predicted_ms: 100,
      predicted_per_second: 20,
      cache_n: 4,
      queue_ms: 1
    })
    assert.deepStrictEqual(usage.usage, {
      prompt_tokens: 10,
      completion_tokens: 3,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 4 },
      timings: { agent_turn_cache_hit: false, cached_prefix_tokens: 4, prefilled_tokens: 6 }
    })
    assert.deepStrictEqual(usage.choices, [])
  })

  it("have no speed where none was measured", () => {
    const idle: Finish = { ...finish, usage: { ...finish.usage, completionTokens: 0, promptMs: 0, generationMs: 0 } }
    const [last] = data(withUsage().event(idle))
    assert.deepInclude(last.timings, { prompt_per_second: null, predicted_per_second: null, predicted_n: 0 })
  })

  it("end in an error event that names the response", () => {
    const frame = withUsage().error(new EngineError({ reason: "Internal", message: "at 0x7ffe /home/x" }))
    const [error] = data(frame)
    assert.deepStrictEqual(error.error, {
      message: "Server error: the engine failed on this request.",
      type: "server_error",
      param: null,
      code: "engine_failed",
      request_id: head.id
    })
  })
})
