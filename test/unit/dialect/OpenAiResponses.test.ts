import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as OpenAiResponses from "../../../src/dialect/OpenAiResponses.ts"
import type { Fields } from "../../../src/dialect/OpenAiResponsesTools.ts"
import * as ReasoningCarrier from "../../../src/dialect/ReasoningCarrier.ts"
import { parse } from "../../../src/dialect/WireRequest.ts"
import type { Message } from "../../../src/domain/Conversation.ts"

type Stored = Partial<OpenAiResponses.StoredConversations>

const decode = (body: unknown, stored: Stored = {}) =>
  Result.flatMap(parse(JSON.stringify(body)), (wire) =>
    OpenAiResponses.decode(wire, {
      tenant: "local",
      session: undefined,
      randomSeed: 7,
      stored: { items: () => undefined, item: () => undefined, ...stored }
    }))

const decoded = (body: unknown, stored?: Stored) => {
  const result = decode(body, stored)
  if (Result.isFailure(result)) assert.fail(JSON.stringify(result.failure))
  return result.success
}

const messagesOf = (input: unknown, more: object = {}, stored?: Stored): ReadonlyArray<Message> =>
  decoded({ input, ...more }, stored).prompt.conversation.messages

const refusal = (body: unknown) => {
  const result = decode(body)
  if (Result.isSuccess(result)) assert.fail(`accepted: ${JSON.stringify(body)}`)
  assert.ok(result.failure._tag !== "PreviousNotFound")
  return result.failure
}

const text = (value: string) => [{ type: "input_text", text: value }]
const functionTool = (name: string, more: object = {}) => ({ type: "function", name, ...more })
const image = { type: "input_image", image_url: "data:image/png;base64,AAAA" }

describe("every field", () => {
  const acts: ReadonlyArray<readonly [string, object, (request: OpenAiResponses.DecodedResponses) => unknown, unknown]> = [
    ["model", { model: "m" }, ({ request, echo }) => [request.model, echo.model], ["m", "m"]],
    ["stream", { stream: true }, ({ stream }) => stream, true],
    ["store", { store: false }, ({ echo }) => echo.store, false],
    ["store by default", {}, ({ echo }) => echo.store, true],
    ["instructions", { instructions: "i" }, ({ prompt }) => prompt.conversation.messages[0], { role: "system", content: "i" }],
    ["max_output_tokens", { max_output_tokens: 5, max_tokens: 6 }, ({ request }) => request.maxTokens, 5],
    ["max_tokens", { max_tokens: 6 }, ({ request, echo }) => [request.maxTokens, echo.max_output_tokens], [6, 6]],
    ["max_completion_tokens", { max_completion_tokens: 7, max_tokens: 6 }, ({ request }) => request.maxTokens, 7],
    ["temperature", { temperature: 1.5 }, ({ request, echo }) => [request.sampling.temperature, echo.temperature], [1.5, 1.5]],
    ["top_p", { top_p: 0.5 }, ({ request, echo }) => [request.sampling.topP, echo.top_p], [0.5, 0.5]],
    ["top_k", { top_k: 3 }, ({ request }) => request.sampling.topK, 3],
    ["min_p", { min_p: 0.1 }, ({ request }) => request.sampling.minP, 0.1],
    ["seed", { seed: 9 }, ({ request }) => request.sampling.seed, 9],
    ["no seed", {}, ({ request }) => request.sampling.seed, 7],
    ["frequency_penalty", { frequency_penalty: 1 }, ({ request }) => request.sampling.frequencyPenalty, 1],
    ["presence_penalty", { presence_penalty: -1 }, ({ request }) => request.sampling.presencePenalty, -1],
    ["repetition_penalty", { repetition_penalty: 1.5 }, ({ request }) => request.sampling.repetitionPenalty, 1.5],
    ["rep_pen", { rep_pen: 1.25 }, ({ request }) => request.sampling.repetitionPenalty, 1.25],
    ["rep_window", { rep_window: 9 }, ({ request }) => request.sampling.repetitionWindow, 9],
    ["logit_bias", { logit_bias: { "4": 2 } }, ({ request }) => request.sampling.logitBias, [[4, 2]]],
    ["stop", { stop: ["a"] }, ({ request }) => request.stopStrings, ["a"]],
    ["stop_sequences", { stop_sequences: ["b"] }, ({ request }) => request.stopStrings, ["b"]],
    ["parallel_tool_calls", { parallel_tool_calls: false }, ({ request }) => request.parallelToolCalls, false],
    ["metadata", { metadata: { a: "b" } }, ({ echo }) => echo.metadata, { a: "b" }],
    ["tool_choice auto", { tool_choice: "auto" }, ({ echo }) => echo.tool_choice, "auto"],
    ["text.format text", { text: { format: { type: "text" } } }, ({ echo }) => echo.text, { format: { type: "text" } }],
    ["top_logprobs", { top_logprobs: 3 }, ({ request }) => request.tokenOptions?.topLogprobs, 3],
    [
      "include logprobs",
      { include: ["message.output_text.logprobs"] },
      ({ request, ignored }) => [request.tokenOptions?.topLogprobs, ignored],
      [0, []]
    ],
    ["include encrypted reasoning", { include: ["reasoning.encrypted_content"] }, ({ reasoning }) => reasoning.sealed, true],
    ["reasoning.summary", { reasoning: { summary: "auto" } }, ({ reasoning }) => reasoning.summary, true],
    ["reasoning.generate_summary", { reasoning: { generate_summary: "detailed" } }, ({ reasoning }) => reasoning.summary, true],
    [
      "reasoning.effort",
      { reasoning: { effort: "high" } },
      ({ prompt }) => prompt.conversation.templateVariables,
      { enable_thinking: true, reasoning_effort: "high" }
    ],
    ["reasoning.effort none", { reasoning: { effort: "none" } }, ({ prompt }) => prompt.conversation.templateVariables, {
      enable_thinking: false
    }],
    ["reasoning.effort minimal", { reasoning: { effort: "minimal" } }, ({ prompt }) => prompt.conversation.templateVariables, {
      enable_thinking: false
    }],
    ["no reasoning", {}, ({ prompt }) => prompt.conversation.templateVariables, { enable_thinking: false }],
    ["background false", { background: false }, ({ ignored }) => ignored, []],
    ["n 1", { n: 1 }, ({ ignored }) => ignored, []],
    ["truncation disabled", { truncation: "disabled" }, ({ ignored }) => ignored, []],
    ["prompt_cache_key", { prompt_cache_key: "k" }, ({ ignored }) => ignored, []],
    ["nulls", { model: null, tools: null, reasoning: null, text: null, store: null, metadata: null }, ({ ignored }) => ignored, []]
  ]
  for (const [name, fields, read, expected] of acts) {
    it(`${name} acts`, () => assert.deepStrictEqual(read(decoded({ input: "hi", ...fields })), expected))
  }

  const refused: ReadonlyArray<readonly [object, string]> = [
    [{ input: 5 }, "input"],
    [{ input: [] }, "input"],
    [{ input: [5] }, "input.0"],
    [{ input: [{}] }, "input.0.type"],
    [{ input: [{ type: 5 }] }, "input.0.type"],
    [{ input: [{ role: "tool", content: "x" }] }, "input.0.role"],
    [{ input: [{ type: "message", content: "x" }] }, "input.0.role"],
    [{ input: [{ role: "user", content: 5 }] }, "input.0.content"],
    [{ input: [{ role: "user", content: [{ type: "input_text" }] }] }, "input.0.content.0.text"],
    [{ input: [{ role: "user", content: [...text("x"), image] }] }, "input.0.content.1"],
    [{ input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] }, "input.0.content.0"],
    [{ input: [{ type: "function_call", name: "f", arguments: "{}" }] }, "input.0.call_id"],
    [{ input: [{ type: "function_call_output", call_id: "c" }] }, "input.0.output"],
    [{ input: [{ type: "item_reference" }] }, "input.0.id"],
    [{ background: true }, "background"],
    [{ n: 2 }, "n"],
    [{ top_logprobs: 21 }, "top_logprobs"],
    [{ conversation: "conv_1" }, "conversation"],
    [{ prompt: { id: "p" } }, "prompt"],
    [{ tool_choice: "required" }, "tool_choice"],
    [{ tool_choice: { type: "function", name: "f" } }, "tool_choice"],
    [{ tool_choice: { type: "allowed_tools", mode: "auto", tools: [] } }, "tool_choice.tools"],
    [{ tool_choice: { type: "web_search" } }, "tool_choice.type"],
    [{ text: { format: { type: "grammar" } } }, "text.format.type"],
    [{ text: { format: { type: "json_schema", name: "n" } } }, "text.format.schema"],
    [{ tools: [{ type: "namespace", name: "n", tools: [{ type: "namespace", name: "m", tools: [] }] }] }, "tools.0.tools.0"],
    [{ tools: [{ type: "function" }] }, "tools.0.name"],
    [{ tools: [functionTool("")] }, "tools.0.name"],
    [{ tools: [functionTool("f", { parameters: [] })] }, "tools.0.parameters"],
    [{ tools: ["f"] }, "tools.0"],
    [{ tools: [{ type: 5 }] }, "tools.0.type"],
    [{ include: "x" }, "include"],
    [{ metadata: { a: {} } }, "metadata.a"],
    [{ max_output_tokens: 0 }, "max_output_tokens"],
    [{ max_output_tokens: 2 ** 31 }, "max_output_tokens"],
    [{ temperature: -1 }, "temperature"],
    [{ temperature: 1e308 }, "temperature"],
    [{ temperature: "NaN" }, "temperature"],
    [{ top_p: 0 }, "top_p"],
    [{ reasoning: { effort: 5 } }, "reasoning.effort"],
    [{ instructions: [] }, "instructions"],
    [{ previous_response_id: 5 }, "previous_response_id"],
    [{ stream: "yes" }, "stream"],
    [{ store: "yes" }, "store"]
  ]
  for (const [fields, field] of refused) {
    it(`refuses ${field} of ${JSON.stringify(fields).slice(0, 90)}`, () =>
      assert.strictEqual(refusal({ input: "hi", ...fields }).field, field))
  }

  const ignored: ReadonlyArray<readonly [object, ReadonlyArray<string>]> = [
    [{ service_tier: "auto" }, ["service_tier"]],
    [{ client_metadata: { a: "b" } }, ["client_metadata"]],
    [{ user: "u" }, ["user"]],
    [{ safety_identifier: "s" }, ["safety_identifier"]],
    [{ prompt_cache_retention: "24h" }, ["prompt_cache_retention"]],
    [{ max_tool_calls: 3 }, ["max_tool_calls"]],
    [{ stream_options: { include_obfuscation: false } }, ["stream_options"]],
    [{ merge: true }, ["merge"]],
    [{ text: { verbosity: "low" } }, ["text.verbosity"]],
    [{ truncation: "auto" }, ["truncation"]],
    [{ reasoning: { effort: "low", context: "all_turns" } }, ["reasoning.context"]],
    [{ text: { format: { type: "text" }, other: 1 } }, ["text.other"]],
    [{ include: ["file_search_call.results"] }, ["include.0"]],
    [{ anything: 1 }, ["anything"]],
    [{ tools: [{ type: "web_search" }, functionTool("f"), { type: "tool_search" }, {}] }, ["tools.0", "tools.2", "tools.3"]],
    [{ tools: [{ type: "custom", name: "c", format: { type: "grammar", syntax: "peg", definition: "start: x" } }] }, ["tools.0.format"]],
    [{ tools: [{ type: "custom", name: "c", format: { type: "text" } }] }, []],
    [{ input: [{ type: "web_search_call", id: "ws_1", action: {} }, { role: "user", content: "x" }] }, ["input.0"]],
    [{ input: [{ type: "item_reference", id: "msg_1" }, { role: "user", content: "x" }] }, ["input.0"]]
  ]
  for (const [fields, names] of ignored) {
    it(`lists what ${JSON.stringify(fields).slice(0, 80)} ignores`, () =>
      assert.deepStrictEqual(decoded({ input: "hi", ...fields }).ignored, names))
  }

  it("keeps the list short", () => {
    const tools = Array.from({ length: 500 }, () => ({ type: "web_search" }))
    assert.strictEqual(decoded({ input: "hi", tools }).ignored.length, 64)
  })
})

describe("input", () => {
  it("is one user message where it is a string, also an empty one", () => {
    assert.deepStrictEqual(messagesOf("hi"), [{ role: "user", content: "hi" }])
    assert.deepStrictEqual(messagesOf("", { max_output_tokens: 1 }), [{ role: "user", content: "" }])
  })

  it("keeps every role in its place, with content in any form", () => {
    assert.deepStrictEqual(
      messagesOf([
        { type: "message", id: "msg_1", role: "developer", content: text("a") },
        { role: "user", content: [...text("b"), ...text("c")], internal: {} },
        { role: "assistant", content: [{ type: "output_text", text: "d", annotations: [], logprobs: [] }] },
        { role: "system", content: "e" },
        { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "f" }] },
        { type: null, role: "user", content: null },
        { role: "user", content: "g\ud800" }
      ]),
      [
        { role: "developer", content: "a" },
        { role: "user", content: "bc" },
        { role: "assistant", content: "d" },
        { role: "system", content: "e" },
        { role: "assistant", content: "f" },
        { role: "user", content: "" },
        { role: "user", content: "g\ufffd" }
      ]
    )
  })

  it("joins reasoning, message and calls to one assistant turn", () => {
    assert.deepStrictEqual(
      messagesOf([
        { role: "user", content: "go" },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "think" }], content: null },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "I look." }] },
        { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "{\"b\":1,\"a\":2}", status: "completed" },
        { type: "function_call", call_id: "call_2", name: "g", arguments: "{" },
        { type: "function_call_output", call_id: "call_1", output: "one" },
        { type: "function_call_output", call_id: "call_2", output: [...text("t"), ...text("wo")] }
      ]),
      [
        { role: "user", content: "go" },
        {
          role: "assistant",
          content: "I look.",
          reasoning: "think",
          toolCalls: [{ id: "call_1", name: "f", arguments: "{\"b\":1,\"a\":2}" }, { id: "call_2", name: "g", arguments: "{" }]
        },
        { role: "tool", toolCallId: "call_1", content: "one" },
        { role: "tool", toolCallId: "call_2", content: "two" }
      ]
    )
  })

  it("an empty message before calls is no text of the turn", () => {
    assert.deepStrictEqual(
      messagesOf([
        { role: "assistant", content: [{ type: "output_text", text: "" }] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" }
      ]),
      [{ role: "assistant", content: null, toolCalls: [{ id: "c", name: "f", arguments: "{}" }] }]
    )
  })

  it("starts a new turn with text or reasoning after calls, and with a second text", () => {
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" }
    const toolCalls = [{ id: "c", name: "f", arguments: "{}" }]
    assert.deepStrictEqual(messagesOf([call, { role: "assistant", content: "a" }, { role: "assistant", content: "b" }]), [
      { role: "assistant", content: null, toolCalls },
      { role: "assistant", content: "a" },
      { role: "assistant", content: "b" }
    ])
    assert.deepStrictEqual(messagesOf([call, { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "r" }] }, call]), [
      { role: "assistant", content: null, toolCalls },
      { role: "assistant", content: null, reasoning: "r", toolCalls }
    ])
  })

  it("restores reasoning exactly from what it sealed, and reads the text beside another server's", () => {
    const reasoning = " \"odd\" \u{1f30d}\n\n text "
    const summary = [{ type: "summary_text", text: "short" }]
    const turn = (encrypted_content: string) =>
      messagesOf([{ type: "reasoning", summary, encrypted_content }, { role: "assistant", content: "a" }])
    assert.deepStrictEqual(turn(ReasoningCarrier.seal(reasoning)), [{ role: "assistant", content: "a", reasoning }])
    for (const foreign of ["RU5DMQ==", "ENCRYPTED-BLOB", "mashbox1.%%%", ""]) {
      assert.deepStrictEqual(turn(foreign), [{ role: "assistant", content: "a", reasoning: "short" }])
    }
    assert.deepStrictEqual(
      messagesOf([{ type: "reasoning", summary: [], encrypted_content: "x" }, { role: "assistant", content: "a" }]),
      [{ role: "assistant", content: "a" }]
    )
  })

  it("a picture in an earlier turn, or in a tool's result, leaves a placeholder", () => {
    const left = "[image left out: this model reads only text]"
    assert.deepStrictEqual(
      messagesOf([
        { role: "user", content: [...text("see "), image] },
        { role: "assistant", content: "ok" },
        { type: "function_call_output", call_id: "c", output: [image] },
        { role: "user", content: "and now?" }
      ]),
      [
        { role: "user", content: `see ${left}` },
        { role: "assistant", content: "ok" },
        { role: "tool", toolCallId: "c", content: left },
        { role: "user", content: "and now?" }
      ]
    )
    assert.deepStrictEqual(
      messagesOf([{ role: "user", content: [image] }, { type: "function_call", call_id: "c", name: "f", arguments: "{}" }])[0],
      { role: "user", content: left }
    )
    assert.strictEqual(
      refusal({ input: [{ role: "user", content: [image] }, { role: "developer", content: "x" }] }).field,
      "input.0.content.0"
    )
  })

  it("takes stored items first, and nothing else of the earlier request", () => {
    const items: ReadonlyArray<Fields> = [{ type: "message", role: "user", content: text("one") }, {
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text: "two" }]
    }]
    const stored = { items: (id: string) => id === "resp_1" ? items : undefined }
    assert.deepStrictEqual(messagesOf("three", { previous_response_id: "resp_1", instructions: "new" }, stored), [
      { role: "system", content: "new" },
      { role: "user", content: "one" },
      { role: "assistant", content: "two" },
      { role: "user", content: "three" }
    ])
    assert.deepStrictEqual(messagesOf([], { previous_response_id: "resp_1" }, stored).length, 2)
    const missing = decode({ input: "x", previous_response_id: "resp_2" }, stored)
    assert.ok(Result.isFailure(missing))
    assert.strictEqual(missing.failure._tag, "PreviousNotFound")
  })

  it("resolves references, and tools that came with an item count", () => {
    const item = { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "found" }] }
    const body = decoded({
      input: [{ type: "item_reference", id: "msg_1" }, {
        type: "additional_tools",
        role: "developer",
        tools: [{ type: "namespace", name: "functions", tools: [{ type: "custom", name: "exec" }] }]
      }]
    }, { item: (id) => id === "msg_1" ? item : undefined })
    assert.deepStrictEqual(body.prompt.conversation.messages, [{ role: "assistant", content: "found" }])
    assert.deepStrictEqual(body.tools.target("functions__exec"), { kind: "custom", name: "exec", namespace: "functions" })
    assert.deepStrictEqual(body.ignored, [])
  })
})

describe("tools", () => {
  const tools = [
    functionTool("f", { description: "does f", parameters: { type: "object", properties: {} }, strict: false }),
    { type: "namespace", name: "a", description: "A", tools: [functionTool("run"), functionTool("b__run")] },
    { type: "namespace", name: "a__b", tools: [functionTool("run")] },
    { type: "namespace", name: "c", tools: [functionTool("run")] },
    { type: "custom", name: "apply_patch", description: "patch", format: { type: "grammar", syntax: "lark", definition: "start: x" } }
  ]

  it("are one flat list in which every one has its own name", () => {
    const body = decoded({ input: "x", tools })
    assert.deepStrictEqual(body.prompt.conversation.tools.map((tool) => tool.name), [
      "f",
      "a__run",
      "a__b__run",
      "a__b__run_2",
      "c__run",
      "apply_patch"
    ])
    assert.deepStrictEqual(body.prompt.conversation.tools[0], {
      name: "f",
      description: "does f",
      parameters: { type: "object", properties: {} }
    })
    assert.deepStrictEqual(body.tools.target("a__b__run"), { kind: "function", name: "b__run", namespace: "a" })
    assert.deepStrictEqual(body.tools.target("a__b__run_2"), { kind: "function", name: "run", namespace: "a__b" })
    assert.deepStrictEqual(body.tools.target("apply_patch"), { kind: "custom", name: "apply_patch", namespace: undefined })
    assert.deepStrictEqual(body.tools.target("invented"), { kind: "function", name: "invented", namespace: undefined })
    assert.include(body.prompt.conversation.tools.at(-1)?.description ?? "", "start: x")
    assert.deepStrictEqual(body.echo.tools, tools)
  })

  it("calls in the history carry the names that the model knows", () => {
    const [message] = decoded({
      tools,
      input: [
        { type: "function_call", call_id: "1", name: "run", namespace: "a__b", arguments: "{}" },
        { type: "function_call", call_id: "2", name: "run", namespace: "gone", arguments: "{}" },
        { type: "custom_tool_call", call_id: "3", name: "apply_patch", input: "*** \"x\"\n" },
        { type: "local_shell_call", call_id: "4", action: { type: "exec", command: ["ls"] } }
      ]
    }).prompt.conversation.messages
    assert.deepStrictEqual(message?.role === "assistant" ? message.toolCalls : [], [
      { id: "1", name: "a__b__run_2", arguments: "{}" },
      { id: "2", name: "gone__run", arguments: "{}" },
      { id: "3", name: "apply_patch", arguments: "{\"input\":\"*** \\\"x\\\"\\n\"}" },
      { id: "4", name: "local_shell", arguments: "{\"type\":\"exec\",\"command\":[\"ls\"]}" }
    ])
  })

  it("are not shown where tool_choice is none", () => {
    assert.deepStrictEqual(decoded({ input: "x", tools, tool_choice: "none" }).prompt.conversation.tools, [])
  })
})
