import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answerOf, harness, tokensOf, user } from "./harness.ts"

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
})
