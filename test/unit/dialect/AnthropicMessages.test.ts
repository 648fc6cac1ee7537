import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { MessagesRequest } from "../../../schema/anthropic/MessagesRequest.ts"
import * as AnthropicMessages from "../../../src/dialect/AnthropicMessages.ts"
import * as ReasoningCarrier from "../../../src/dialect/ReasoningCarrier.ts"
import { parse } from "../../../src/dialect/WireRequest.ts"
import type { Message } from "../../../src/domain/Conversation.ts"
import type { GenerationRequest } from "../../../src/domain/GenerationRequest.ts"
import { greedy } from "../../../src/domain/Sampling.ts"
import type { ServedModelValue } from "../../../src/domain/ServedModel.ts"

const served: ServedModelValue = {
  id: "demo",
  aliases: ["claude-local"],
  contextLength: 4096,
  weights: "demo.gguf",
  weightsBytes: 0,
  parameters: 0,
  slots: 1,
  cacheRamMib: 0,
  prefixCache: false
}

const context = { tenant: "t", session: undefined, randomSeed: 77, served }

const decodeResult = (body: object) => AnthropicMessages.decode(Result.getOrThrow(parse(JSON.stringify(body))), context)

const decode = (body: object) => Result.getOrThrow(decodeResult(body))

const hi = [{ role: "user", content: "hi" }]
const decodeWith = (fields: object) => decode({ messages: hi, ...fields })

const conversationOf = ({ prompt }: GenerationRequest) => {
  assert(prompt._tag === "Chat")
  return prompt.conversation
}

const conversation = (fields: object) => conversationOf(decodeWith(fields).request)
const messages = (...wire: ReadonlyArray<object>) => conversation({ messages: wire }).messages
const blocks = (role: string, ...content: ReadonlyArray<object>) => ({ role, content })
const text = (value: string) => ({ type: "text", text: value })

const failure = (body: object) => {
  const result = decodeResult(body)
  assert(Result.isFailure(result))
  return result.failure
}
const failureWith = (fields: object) => failure({ messages: hi, ...fields })

const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }
const weather = {
  name: "weather",
  description: "Tells the weather.",
  input_schema: { type: "object", properties: { city: { type: "string" } } }
}
const weatherTool = { name: "weather", description: "Tells the weather.", parameters: weather.input_schema }

describe("the fields", () => {
  it("has a default for every one", () => {
    assert.deepStrictEqual(decode({ messages: hi }), {
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
      model: "demo",
      stream: false,
      omitThinking: false,
      returnProgress: false,
      ignored: []
    })
  })

  const budget = { type: "enabled", budget_tokens: -1 }

  /** What a value of each field changes in what is decoded without it; `ignored` fields change nothing else. */
  const acts: ReadonlyArray<
    readonly [field: string, value: unknown, read: (decoded: AnthropicMessages.DecodedRequest) => unknown, expected: unknown]
  > = [
    ["model", "claude-opus-5-5", (decoded) => [decoded.model, decoded.request.model, decoded.ignored], ["claude-opus-5-5", undefined, [
      "model"
    ]]],
    ["model", "claude-local", (decoded) => [decoded.model, decoded.ignored], ["claude-local", []]],
    ["model", "demo", (decoded) => [decoded.model, decoded.ignored], ["demo", []]],
    ["messages", [{ role: "user", content: "other" }], ({ request }) => conversationOf(request).messages, [{
      role: "user",
      content: "other"
    }]],
    ["system", "be brief", ({ request }) => conversationOf(request).messages[0], { role: "system", content: "be brief" }],
    ["system", [text("a"), text("b")], ({ request }) => conversationOf(request).messages[0], { role: "system", content: "a\n\nb" }],
    ["tools", [weather], ({ request }) => conversationOf(request).tools, [weatherTool]],
    ["tools", [], ({ request }) => conversationOf(request).tools, []],
    ["tool_choice", { type: "auto" }, ({ request }) => request.parallelToolCalls, undefined],
    ["tool_choice", { type: "auto", disable_parallel_tool_use: true }, ({ request }) => request.parallelToolCalls, false],
    ["thinking", { type: "enabled" }, ({ request }) => conversationOf(request).templateVariables, { enable_thinking: true }],
    ["thinking", { type: "adaptive" }, ({ request }) => conversationOf(request).templateVariables, { enable_thinking: true }],
    ["thinking", { type: "disabled" }, ({ request }) => conversationOf(request).templateVariables, { enable_thinking: false }],
    ["tool_choice", { type: "auto" }, ({ request }) => request.toolChoice, undefined],
    ["thinking", budget, ({ request }) => request.reasoningBudget, undefined],
    ["thinking", { type: "enabled", budget_tokens: 1024 }, ({ request }) => request.reasoningBudget, 1024],
    ["thinking", { type: "disabled", budget_tokens: 1024 }, ({ request }) => request.reasoningBudget, 0],
    ["thinking", { type: "enabled", budget_tokens: 1e18 }, ({ request }) => request.reasoningBudget, undefined],
    ["thinking", { type: "adaptive", display: "omitted" }, (decoded) => decoded.omitThinking, true],
    ["thinking", { type: "adaptive", display: "summarized" }, (decoded) => decoded.omitThinking, false],
    ["output_config", { effort: "xhigh" }, ({ request }) => conversationOf(request).templateVariables, {
      enable_thinking: false,
      reasoning_effort: "xhigh"
    }],
    ["output_config", { effort: null, format: null }, ({ request }) => conversationOf(request).templateVariables, {
      enable_thinking: false
    }],
    ["return_progress", true, (decoded) => decoded.returnProgress, true],
    ["stream", true, (decoded) => decoded.stream, true],
    ["max_tokens", 128_000, ({ request }) => request.maxTokens, 128_000],
    ["max_completion_tokens", 9, ({ request }) => request.maxTokens, 9],
    ["max_output_tokens", 8, ({ request }) => request.maxTokens, 8],
    ["stop_sequences", ["X", "Y"], ({ request }) => request.stopStrings, ["X", "Y"]],
    ["stop", "Z", ({ request }) => request.stopStrings, ["Z"]],
    ["temperature", 1, ({ request }) => request.sampling.temperature, 1],
    ["top_p", 0.5, ({ request }) => request.sampling.topP, 0.5],
    ["top_k", 5, ({ request }) => request.sampling.topK, 5],
    ["min_p", 0.25, ({ request }) => request.sampling.minP, 0.25],
    ["seed", 9, ({ request }) => request.sampling.seed, 9],
    ["frequency_penalty", -1, ({ request }) => request.sampling.frequencyPenalty, -1],
    ["presence_penalty", 2, ({ request }) => request.sampling.presencePenalty, 2],
    ["repetition_penalty", 1.5, ({ request }) => request.sampling.repetitionPenalty, 1.5],
    ["rep_pen", 1.25, ({ request }) => request.sampling.repetitionPenalty, 1.25],
    ["rep_window", 32, ({ request }) => request.sampling.repetitionWindow, 32],
    ["logit_bias", { "5": -100 }, ({ request }) => request.sampling.logitBias, [[5, -100]]],
    ["n", 1, (decoded) => decoded.ignored, []]
  ]
  for (const [field, value, read, expected] of acts) {
    it(`${field} ${JSON.stringify(value).slice(0, 60)} acts`, () => {
      assert.deepStrictEqual(read(decodeWith({ [field]: value })), expected)
    })
  }

  const ignored: Readonly<Record<string, unknown>> = {
    prompt_cache_key: "k",
    metadata: { user_id: "u" },
    service_tier: "auto",
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    safeguards: [{ type: "dangerous_tool_use" }],
    betas: ["x"],
    container: "c",
    mcp_servers: [],
    inference_geo: "eu",
    speed: "fast",
    a_field_of_tomorrow: { deep: [1] }
  }
  for (const [field, value] of Object.entries(ignored)) {
    it(`${field} is ignored, and listed so`, () => {
      const decoded = decodeWith({ [field]: value })
      assert.deepStrictEqual({ ...decoded, ignored: [] }, decode({ messages: hi }))
      assert.deepStrictEqual(decoded.ignored, [field])
    })
  }

  it("ignores null as if it were absent", () => {
    const nulls = Object.fromEntries(Object.keys(MessagesRequest.fields).filter((name) => name !== "messages").map((name) => [name, null]))
    assert.deepStrictEqual(decodeWith(nulls), decode({ messages: hi }))
  })

  const refused: ReadonlyArray<readonly [fields: object, named: string]> = [
    [{ output_config: { format: { type: "yaml" } } }, "output_config.format.type"],
    [{ output_format: { type: "yaml" } }, "output_format.type"],
    [{ n: 2 }, "n"],
    [{ thread: { type: "create" } }, "thread"],
    [{ thread: {}, messages: [] }, "thread"],
    [{ messages: [blocks("user", image)] }, "messages.0.content.0"],
    [{ messages: [blocks("user", text("look"), { type: "document", source: { type: "base64", data: "AA" } })] }, "messages.0.content.1"],
    [{ messages: [blocks("user", { type: "container_upload", file_id: "f" })] }, "messages.0.content.0"],
    [{ system: [image] }, "system.0"]
  ]
  for (const [fields, named] of refused) {
    it(`${JSON.stringify(fields).slice(0, 80)} is refused by the name ${named}`, () => {
      const error = failureWith(fields)
      assert.strictEqual(error._tag, "UnsupportedFeature")
      assert.strictEqual(error.field, named)
      assert(error.message.startsWith(`${named}: `))
    })
  }

  const invalid: ReadonlyArray<readonly [fields: object, named: string]> = [
    [{ messages: [] }, "messages"],
    [{ messages: "hi" }, "messages"],
    [{ messages: [{ role: "tool", content: "x" }] }, "messages.0.role"],
    [{ messages: [{ role: "user" }] }, "messages.0.content"],
    [{ messages: [{ role: "user", content: null }] }, "messages.0.content"],
    [{ messages: [blocks("user", { type: "text" })] }, "messages.0.content.0.text"],
    [{ messages: [blocks("user", { text: "x" })] }, "messages.0.content.0.type"],
    [{ messages: [blocks("user", { type: "tool_result", content: "x" })] }, "messages.0.content.0.tool_use_id"],
    [{ messages: [blocks("user", { type: "tool_result", tool_use_id: "a", content: { a: 1 } })] }, "messages.0.content.0.content"],
    [{ messages: [blocks("assistant", { type: "tool_use", name: "a", input: {} })] }, "messages.0.content.0.id"],
    [{ messages: [blocks("assistant", { type: "tool_use", id: "a", input: {} })] }, "messages.0.content.0.name"],
    [{ messages: [blocks("assistant", { type: "tool_use", id: "a", name: "b", input: "{}" })] }, "messages.0.content.0.input"],
    [{ messages: [blocks("user", { type: "document" })] }, "messages.0.content.0.source"],
    [{ messages: [blocks("user", { type: "tool_reference" })] }, "messages.0.content.0.tool_name"],
    [{ tools: [{ description: "x" }] }, "tools.0.name"],
    [{ tools: [{ name: "x", input_schema: "y" }] }, "tools.0.input_schema"],
    [{ tools: {} }, "tools"],
    [{ tool_choice: "auto" }, "tool_choice"],
    [{ tool_choice: { type: "any" } }, "tool_choice"],
    [{ tools: [weather], tool_choice: { type: "tool", name: "other" } }, "tool_choice.name"],
    [{ tools: [weather], tool_choice: { type: "tool" } }, "tool_choice.name"],
    [{ tool_choice: { type: "maybe" } }, "tool_choice.type"],
    [{ thinking: { type: "sometimes" } }, "thinking.type"],
    [{ thinking: { type: "enabled", budget_tokens: "many" } }, "thinking.budget_tokens"],
    [{ output_config: { effort: "huge" } }, "output_config.effort"],
    [{ max_tokens: 0 }, "max_tokens"],
    [{ max_tokens: 1.5 }, "max_tokens"],
    [{ temperature: -1 }, "temperature"],
    [{ top_k: -1 }, "top_k"],
    [{ stop_sequences: [""] }, "stop_sequences.0"],
    [{ stream: "yes" }, "stream"],
    [{ model: "m".repeat(257) }, "model"],
    [{ model: 5 }, "model"]
  ]
  for (const [fields, named] of invalid) {
    it(`${JSON.stringify(fields).slice(0, 80)} is an error in ${named}`, () => {
      const error = failureWith(fields)
      assert.strictEqual(error._tag, "InvalidRequest")
      assert.strictEqual(error.field, named)
      assert(error.message.startsWith(`${named}: `), error.message)
    })
  }
})

describe("messages", () => {
  it("drops Claude Code's billing header, wherever it shares its text", () => {
    const header = "x-anthropic-billing-header: cc_version=2.1.332.9ea; cc_entrypoint=cli;"
    const system = (value: unknown) => conversation({ system: value }).messages
    const brief: ReadonlyArray<Message> = [{ role: "system", content: "be brief" }, { role: "user", content: "hi" }]
    assert.deepStrictEqual(system([text(header), text("be brief")]), brief)
    assert.deepStrictEqual(system(`${header}\n\nbe brief`), brief)
    assert.deepStrictEqual(system([text(header)]), [{ role: "user", content: "hi" }])
    assert.deepStrictEqual(system([text("be brief"), text(header)])[0], { role: "system", content: `be brief\n\n${header}` })
  })

  it("renders a string like one text block, and cache_control not at all", () => {
    assert.deepStrictEqual(
      messages(blocks("user", { ...text("hi"), cache_control: { type: "ephemeral" } }), { role: "system", content: [text("env")] }),
      messages({ role: "user", content: "hi" }, { role: "system", content: "env" })
    )
  })

  it("leaves system messages where they stand", () => {
    assert.deepStrictEqual(
      messages({ role: "user", content: "a" }, blocks("system", text("b"), text("c")), { role: "developer", content: "d" }),
      [{ role: "user", content: "a" }, { role: "system", content: "b\n\nc" }, { role: "developer", content: "d" }]
    )
  })

  it("makes tool results messages of their own, in order", () => {
    const result = (id: string, content: unknown, fields: object = {}) => ({ type: "tool_result", tool_use_id: id, content, ...fields })
    assert.deepStrictEqual(
      messages(
        blocks(
          "user",
          text("first"),
          result("a", "one"),
          result("b", [text("two"), text("more")]),
          result("c", undefined),
          result("d", "no such file", { is_error: true }),
          result("e", "<tool_use_error>bad</tool_use_error>", { is_error: true }),
          result("f", [image, text("after")], { is_error: false }),
          text("last")
        )
      ),
      [
        { role: "user", content: "first" },
        { role: "tool", toolCallId: "a", content: "one" },
        { role: "tool", toolCallId: "b", content: "two\nmore" },
        { role: "tool", toolCallId: "c", content: "" },
        { role: "tool", toolCallId: "d", content: "Error: no such file" },
        { role: "tool", toolCallId: "e", content: "<tool_use_error>bad</tool_use_error>" },
        { role: "tool", toolCallId: "f", content: "[image left out: this model reads only text]\nafter" },
        { role: "user", content: "last" }
      ]
    )
  })

  it("puts an answer's blocks together", () => {
    assert.deepStrictEqual(
      messages(
        { role: "user", content: "a" },
        blocks(
          "assistant",
          { type: "thinking", thinking: "hm", signature: "from elsewhere" },
          text("I will "),
          text("look."),
          { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Rom", n: 1 } },
          { type: "tool_use", id: "toolu_2", name: "weather" }
        ),
        blocks("assistant", { type: "tool_use", id: "toolu_3", name: "weather", input: {} }),
        blocks("user", text("go on"))
      ),
      [
        { role: "user", content: "a" },
        {
          role: "assistant",
          content: "I will look.",
          reasoning: "hm",
          toolCalls: [
            { id: "toolu_1", name: "weather", arguments: "{\"city\":\"Rom\",\"n\":1}" },
            { id: "toolu_2", name: "weather", arguments: "{}" }
          ]
        },
        { role: "assistant", content: null, toolCalls: [{ id: "toolu_3", name: "weather", arguments: "{}" }] },
        { role: "user", content: "go on" }
      ]
    )
  })

  it("takes thinking from the signature where its text was omitted, and any other signature", () => {
    const thinking = (signature: unknown, shown: string) =>
      messages({ role: "user", content: "a" }, blocks("assistant", { type: "thinking", thinking: shown, signature }, text("b")))[1]
    const reasoned = (reasoning: string): Message => ({ role: "assistant", content: "b", reasoning })
    assert.deepStrictEqual(thinking(ReasoningCarrier.seal("so – \n✓"), ""), reasoned("so – \n✓"))
    for (const signature of ["", null, "c2lnMQ==", ReasoningCarrier.plain, `${ReasoningCarrier.plain}.%%%`, "x".repeat(10_000)]) {
      assert.deepStrictEqual(thinking(signature, "shown"), reasoned("shown"))
      assert.deepStrictEqual(thinking(signature, ""), { role: "assistant", content: "b" })
    }
  })

  it("leaves out what only another server can read, and lists it", () => {
    const decoded = decode({
      messages: [
        ...hi,
        blocks(
          "assistant",
          { type: "redacted_thinking", data: "AAA" },
          { type: "server_tool_use", id: "s", name: "web_search", input: {} },
          {
            type: "web_search_tool_result",
            tool_use_id: "s",
            content: { type: "web_search_tool_result_error", error_code: "unavailable" }
          },
          text("b")
        )
      ]
    })
    assert.deepStrictEqual(conversationOf(decoded.request).messages[1], { role: "assistant", content: "b" })
    assert.deepStrictEqual(decoded.ignored, ["messages.1.content.0", "messages.1.content.1", "messages.1.content.2"])
  })

  it("replaces images in history by a placeholder that can be seen", () => {
    assert.deepStrictEqual(
      messages(blocks("user", text("look"), image), { role: "assistant", content: "nice" }, { role: "user", content: "thanks" })[0],
      { role: "user", content: "look\n[image left out: this model reads only text]" }
    )
  })

  it("reads documents and search results of text", () => {
    const source = { type: "text", media_type: "text/plain", data: "Body." }
    assert.deepStrictEqual(
      messages(
        blocks(
          "user",
          { type: "document", title: "Title", context: "About.", source },
          { type: "document", source: { type: "content", content: [text("p"), text("q")] } },
          { type: "search_result", source: "http://x", title: "Hit", content: [text("found")] }
        )
      ),
      [{ role: "user", content: "Title\nAbout.\nBody.\np\nq\nHit\nhttp://x\nfound" }]
    )
  })

  it("takes a request without any text", () => {
    assert.deepStrictEqual(messages(blocks("user")), [{ role: "user", content: "" }])
    assert.deepStrictEqual(messages({ role: "user", content: "" }, blocks("assistant")), [{ role: "user", content: "" }, {
      role: "assistant",
      content: ""
    }])
  })

  it("goes on with an answer that the client began", () => {
    const ending = (...wire: ReadonlyArray<object>) => conversation({ messages: [...hi, ...wire] }).ending
    assert.isUndefined(ending())
    assert.strictEqual(ending({ role: "assistant", content: "{" }), "open_message")
    assert.strictEqual(ending(blocks("assistant", text("{"))), "open_message")
    assert.isUndefined(ending({ role: "assistant", content: " " }))
    assert.isUndefined(ending(blocks("assistant", text("a"), { type: "tool_use", id: "i", name: "n", input: {} })))
    assert.isUndefined(ending({ role: "assistant", content: "{" }, ...hi))
  })

  it("makes half surrogate pairs whole", () => {
    const lone = "a\ud800b"
    const whole = "a\ufffdb"
    const decoded = conversation({
      system: lone,
      tools: [{ name: lone, description: lone }],
      messages: [
        blocks("user", text(lone)),
        blocks("assistant", { type: "thinking", thinking: lone }, { type: "tool_use", id: "i", name: lone, input: { [lone]: lone } }),
        blocks("user", { type: "tool_result", tool_use_id: "i", content: lone })
      ]
    })
    assert.isTrue(JSON.stringify(decoded).isWellFormed())
    assert.deepStrictEqual(decoded.messages[0], { role: "system", content: whole })
    assert.strictEqual(decoded.tools[0]?.name, whole)
  })
})

describe("tools", () => {
  const deferred = { ...weather, name: "WebFetch", defer_loading: true }

  it("keeps deferred tools out of the head and defines them where they are referred to", () => {
    const { messages: rendered, tools } = conversation({
      tools: [weather, deferred],
      messages: [
        ...hi,
        blocks("assistant", { type: "tool_use", id: "a", name: "ToolSearch", input: {} }),
        blocks("user", {
          type: "tool_result",
          tool_use_id: "a",
          content: [{ type: "tool_reference", tool_name: "WebFetch" }, { type: "tool_reference", tool_name: "Nothing" }]
        })
      ]
    })
    assert.deepStrictEqual(tools, [weatherTool])
    const last = rendered.at(-1)
    assert(last?.role === "tool")
    assert.strictEqual(
      last.content,
      `<tools>\n${
        JSON.stringify({ type: "function", function: { ...weatherTool, name: "WebFetch" } })
      }\n</tools>\n[the tool Nothing is not available]`
    )
  })

  it("adds and removes tools in system messages", () => {
    const added = blocks("system", { type: "tool_addition", tool_name: "WebFetch" }, { type: "tool_removal", tool_name: "weather" })
    const last = conversation({ tools: [weather, deferred], messages: [...hi, added] }).messages.at(-1)
    assert(last?.role === "system")
    assert.include(last.content, "\"name\":\"WebFetch\"")
    assert.include(last.content, "[the tool weather is no longer available]")
  })

  it("lists server tools as ignored", () => {
    const decoded = decodeWith({
      tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 8 }, weather, { type: "custom", name: "b" }, {
        type: "mcp_toolset"
      }]
    })
    assert.deepStrictEqual(conversationOf(decoded.request).tools, [weatherTool, { name: "b" }])
    assert.deepStrictEqual(decoded.ignored, ["tools.0", "tools.3"])
  })

  it("has none in the prompt for tool_choice none", () => {
    assert.deepStrictEqual(conversation({ tools: [weather], tool_choice: { type: "none" } }).tools, [])
  })

  it("takes the effort of the newest message that has one", () => {
    const variables = (...wire: ReadonlyArray<object>) =>
      conversation({ messages: wire, output_config: { effort: "low" } }).templateVariables
    const effort = (level: string) => ({ role: "user", content: "a", output_config: { effort: level } })
    assert.strictEqual(variables(...hi)["reasoning_effort"], "low")
    assert.strictEqual(variables(effort("high"), effort("max"), ...hi)["reasoning_effort"], "max")
  })
})

describe("count_tokens", () => {
  const counted = (body: object) => AnthropicMessages.decodeCounted(Result.getOrThrow(parse(JSON.stringify(body))), served)

  it("decodes as messages does, and refuses nothing about the output", () => {
    const body = { messages: hi, system: "s", tools: [weather], thinking: { type: "enabled", budget_tokens: 5 } }
    const { conversation: own, ignored } = Result.getOrThrow(
      counted({ ...body, model: "m", max_tokens: 0, tool_choice: { type: "any" }, output_config: { format: { type: "json_schema" } } })
    )
    assert.deepStrictEqual(own, conversation(body))
    assert.deepStrictEqual(ignored, ["model", "max_tokens"])
  })

  it("names the field that is wrong", () => {
    const result = counted({ messages: [{ role: "user" }] })
    assert(Result.isFailure(result))
    assert.strictEqual(result.failure.field, "messages.0.content")
  })
})

describe("sessionName", () => {
  const name = (fields: object, known = false) => AnthropicMessages.sessionName({ fields: { ...fields } }, known)
  it("is the cache key, or the session in metadata.user_id", () => {
    assert.strictEqual(name({ prompt_cache_key: "k", metadata: { user_id: "{\"session_id\":\"s\"}" } }), "k")
    assert.isUndefined(name({ metadata: { user_id: "{\"session_id\":\"s\"}" } }, true))
    assert.strictEqual(name({ prompt_cache_key: "k" }, true), "k")
    assert.strictEqual(name({ metadata: { user_id: "{\"device_id\":\"d\",\"session_id\":\"s\"}" } }), "s")
    for (const user_id of ["u", "", "{", "[]", "null", "{\"session_id\":5}", "{\"session_id\":\"\"}", 7, null]) {
      assert.isUndefined(name({ metadata: { user_id } }), String(user_id))
    }
    assert.isUndefined(name({ metadata: "x", prompt_cache_key: "" }))
  })
})
