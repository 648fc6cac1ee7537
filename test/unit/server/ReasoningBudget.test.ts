import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answerOf, harness, textOf, tokensOf, tokensWith, user } from "./harness.ts"

/** A model that thinks for ever, or until this token. */
const closing = 0xe001

const server = (thoughts: number, options: { readonly closes?: boolean } = {}) =>
  harness({
    script: {
      answer: () => ({
        tokens: [...tokensOf("t".repeat(thoughts)), ...(options.closes === true ? [closing] : []), ...tokensOf("a".repeat(40))]
      })
    },
    decode: (token) => token === closing ? "</think>" : String.fromCharCode(token),
    tokenId: (text) => text === "</think>" ? closing : undefined
  })

const said = "ttttt\n\nThat is all the thinking there is time for; now I answer."
const forced = "\n\nThat is all the thinking there is time for; now I answer.\n</think>\n\n"

const json = async (response: Response) => JSON.parse(await response.text())

describe("a budget of reasoning", () => {
  it.live("closes the reasoning by force, and the answer begins, in every dialect", () =>
    Effect.gen(function*() {
      const own = yield* server(5)
      const messages = user("hi")
      const send = (path: string, body: object) =>
        Effect.promise(async () =>
          json(await fetch(own.url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }))
        )
      for (
        const fields of [
          { reasoning: { effort: "high", max_tokens: 5 } },
          { enable_thinking: true, thinking_token_budget: 5 },
          { enable_thinking: true, thinking_budget_tokens: 5 }
        ]
      ) {
        const { choices: [choice], usage } = yield* Effect.promise(() => answerOf(own.post({ messages, ...fields })))
        assert.strictEqual(choice?.message.reasoning_content, said)
        assert.strictEqual(choice?.message.content, "a".repeat(40))
        assert.strictEqual(usage.completion_tokens_details?.reasoning_tokens, 5 + forced.indexOf("</think>") + "</think>".length)
        assert.strictEqual(usage.completion_tokens, 5 + forced.length + 40)
      }
      const message = yield* send("/v1/messages", {
        model: "m",
        max_tokens: 4000,
        messages,
        thinking: { type: "enabled", budget_tokens: 5 }
      })
      assert.strictEqual(message.content[0].thinking, said)
      assert.strictEqual(message.content[1].text, "a".repeat(40))
      assert.strictEqual(message.usage.output_tokens_details.thinking_tokens, 5 + forced.trimEnd().length)
    }))

  it.live("says nothing where the reasoning ends before it, where there is none, or where it is negative", () =>
    Effect.gen(function*() {
      const messages = user("hi")
      const early = yield* server(5, { closes: true })
      const { choices: [choice] } = yield* Effect.promise(() =>
        answerOf(early.post({ messages, reasoning: { effort: "low", max_tokens: 6 } }))
      )
      assert.strictEqual(choice?.message.reasoning_content, "ttttt")
      assert.strictEqual(choice?.message.content, "a".repeat(40))
      const off = yield* Effect.promise(() => answerOf(early.post({ messages, thinking_token_budget: 2 })))
      assert.strictEqual(off.choices[0]?.message.content?.slice(0, 6), "ttttt<")
      const endless = yield* Effect.promise(() => answerOf(early.post({ messages, reasoning: { effort: "max", max_tokens: -1 } })))
      assert.strictEqual(endless.choices[0]?.message.reasoning_content, "ttttt")
    }))

  it.live("follows the effort where the template knows none", () =>
    Effect.gen(function*() {
      const own = yield* server(2000)
      const { choices: [choice] } = yield* Effect.promise(() =>
        answerOf(own.post({ messages: user("hi"), reasoning: { effort: "minimal" } }))
      )
      assert.strictEqual(choice?.message.reasoning_content?.replace(/^t+/, ""), said.slice(5))
      assert.strictEqual(/^t+/.exec(choice?.message.reasoning_content ?? "")?.[0].length, 512)
    }))

  it.live("is 0 where a request wants no reasoning, and says nothing then", () =>
    Effect.gen(function*() {
      const specials = new Map([["<think>", 0xe000], ["</think>", closing]])
      const own = yield* harness({
        script: { answer: () => ({ tokens: tokensWith(specials, "<think>aaa") }) },
        specials
      })
      const off = [{ reasoning: { effort: "none" } }, { enable_thinking: false }, { chat_template_kwargs: { enable_thinking: false } }]
      for (const fields of off) {
        const { choices: [choice] } = yield* Effect.promise(() => answerOf(own.post({ messages: user("hi"), ...fields })))
        assert.isUndefined(choice?.message.reasoning_content)
        assert.strictEqual(choice?.message.content, "aaa")
      }
      assert.deepStrictEqual(
        own.engine.requests.map(({ limit }) => [limit?.tokens, textOf(limit?.forced ?? [])]),
        off.map(() => [0, "\n\ue001\n\n"])
      )
    }))

  it.live("is what a forced call leaves of its output, where the request says nothing", () =>
    Effect.gen(function*() {
      const call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
      const own = yield* harness({
        script: { answer: ({ limit }) => ({ tokens: [...tokensOf("t".repeat(limit?.tokens ?? 1000)), ...tokensOf(call)] }) },
        decode: (token) => token === closing ? "</think>" : String.fromCharCode(token),
        tokenId: (text) => text === "</think>" ? closing : undefined
      })
      const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }]
      const body = { messages: user("hi"), enable_thinking: true, tools, tool_choice: "required" }
      // Half of the output, at least 128 tokens, at most 4096.
      for (const [most, reasoning] of [[133, 5], [400, 200], [120, 0]] as const) {
        const { choices: [choice] } = yield* Effect.promise(() => answerOf(own.post({ ...body, max_tokens: most })))
        assert.strictEqual(choice?.finish_reason, "tool_calls")
        assert.strictEqual(/^t*/.exec(choice?.message.reasoning_content ?? "")?.[0].length, reasoning)
        assert.strictEqual(choice?.message.tool_calls?.length, 1)
      }
      yield* Effect.promise(() => answerOf(own.post({ ...body, max_tokens: 400, thinking_token_budget: 7 })))
      yield* Effect.promise(() => answerOf(own.post({ ...body, max_tokens: 400, tool_choice: "auto" })))
      assert.deepStrictEqual(own.engine.requests.map(({ limit }) => limit?.tokens), [5, 200, 0, 7, undefined])
    }))

  describe("of messages in channels", () => {
    const specials = new Map(
      ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>"].map((text, index) => [text, 0xe000 + index])
    )
    const call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}"
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: { a: { type: "integer" } } } } }]
    const sentence = "\n\nThat is all the thinking there is time for; now I answer."
    /** Thinks for ever, but goes on with `next` where its thoughts are ended. */
    const channels = (next: string, header = "<|channel|>analysis<|message|>") =>
      harness({
        script: {
          answer: ({ limit }) => {
            const before = limit === undefined ? 0 : limit.begin.length === 0 ? limit.tokens : limit.tokens + limit.begin.length
            const thought = tokensWith(specials, header + "t".repeat(100)).slice(0, before)
            return { tokens: [...thought, ...tokensWith(specials, next)] }
          }
        },
        specials,
        served: { toolSyntax: "harmony" }
      })

    it.live("ends the message of reasoning, so that a forced call comes, in every dialect", () =>
      Effect.gen(function*() {
        const own = yield* channels(call)
        for (
          const fields of [
            { thinking_token_budget: 5, tool_choice: "required" },
            { thinking_token_budget: 5, tool_choice: { type: "function", function: { name: "f" } } },
            // By what the call needs of its output.
            { max_tokens: 133, tool_choice: "required" }
          ]
        ) {
          const { choices: [choice] } = yield* Effect.promise(() => answerOf(own.post({ messages: user("hi"), tools, ...fields })))
          assert.strictEqual(choice?.message.reasoning_content, `ttttt${sentence}`)
          assert.deepStrictEqual(choice?.message.tool_calls?.map((one) => one.function), [{ name: "f", arguments: "{\"a\": 1}" }])
          assert.strictEqual(choice?.finish_reason, "tool_calls")
        }
        const send = (path: string, body: object) =>
          Effect.promise(async () =>
            json(
              await fetch(own.url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
            )
          )
        const message = yield* send("/v1/messages", {
          max_tokens: 4000,
          messages: user("hi"),
          tools: [{ name: "f", input_schema: { type: "object" } }],
          tool_choice: { type: "any" },
          thinking: { type: "enabled", budget_tokens: 5 }
        })
        assert.deepStrictEqual(message.content.map(({ type }: { type: string }) => type), ["thinking", "tool_use"])
        assert.strictEqual(message.content[0].thinking, `ttttt${sentence}`)
        const response = yield* send("/v1/responses", {
          input: "hi",
          max_output_tokens: 133,
          tools: [{ type: "function", name: "f", parameters: { type: "object" } }],
          tool_choice: "required"
        })
        assert.deepStrictEqual(response.output.map(({ type }: { type: string }) => type), ["reasoning", "message", "function_call"])
      }))

    it.live("leaves no place for reasoning in a forced call where there may be none", () =>
      Effect.gen(function*() {
        const own = yield* channels(call)
        for (const fields of [{ reasoning_effort: "none" }, { thinking_token_budget: 0 }, { max_tokens: 60 }]) {
          const { choices: [choice] } = yield* Effect.promise(() =>
            answerOf(own.post({ messages: user("hi"), tools, tool_choice: "required", ...fields }))
          )
          assert.isUndefined(choice?.message.reasoning_content)
          assert.strictEqual(choice?.message.tool_calls?.length, 1)
        }
        const grammars = new Set(own.engine.requests.map(({ grammar, limit }) => {
          assert.isUndefined(limit)
          return Buffer.from(grammar ?? []).toString("base64")
        }))
        assert.strictEqual(grammars.size, 1)
        assert.notInclude(Buffer.from([...grammars].join(), "base64").toString(), "analysis")
      }))

    it.live("ends the reasoning before an answer and before a call that is not forced", () =>
      Effect.gen(function*() {
        const free = yield* channels("aaa")
        const { choices: [choice] } = yield* Effect.promise(() => answerOf(free.post({ messages: user("hi"), thinking_token_budget: 5 })))
        assert.strictEqual(choice?.message.reasoning_content, `ttttt${sentence}`)
        assert.strictEqual(choice?.message.content, "aaa")
        const none = yield* Effect.promise(() => answerOf(free.post({ messages: user("hi"), reasoning_effort: "none" })))
        assert.strictEqual(none.choices[0]?.message.content, "aaa")
        assert.isUndefined(none.choices[0]?.message.reasoning_content)

        const calling = yield* channels(call)
        const called = yield* Effect.promise(() => answerOf(calling.post({ messages: user("hi"), tools, thinking_token_budget: 5 })))
        assert.strictEqual(called.choices[0]?.message.reasoning_content, `ttttt${sentence}`)
        assert.strictEqual(called.choices[0]?.message.tool_calls?.length, 1)
        // A call that may come is held to its form as well.
        assert.isDefined(calling.engine.requests[0]?.grammar)
      }))
  })
})
