import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI, { BadRequestError } from "openai"
import { type Harness, harness, textOf, tokensOf } from "../../unit/server/harness.ts"

const model = "demo/model"

/** The official client against a server that says the prompt in capitals and is half a nat less sure of each token. */
const using = (use: (client: OpenAI, server: Harness) => Promise<void>) =>
  Effect.gen(function*() {
    const server = yield* harness({
      script: {
        answer: ({ tokens }) => ({
          tokens: tokensOf(textOf(tokens).toUpperCase().slice(-6)),
          logprobs: (token, index) => ({ logprob: -index / 2, top: [{ token, logprob: -index / 2 }, { token: 63, logprob: -9 }] })
        })
      }
    })
    yield* Effect.promise(() => use(new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0 }), server))
  })

describe("the official openai package, completions and log probabilities", () => {
  it.live("completions.create: texts, token ids, echo, several of each", () =>
    using(async (client) => {
      const one = await client.completions.create({ model, prompt: "once" })
      assert.deepInclude(one.choices[0], { text: "ONCE", finish_reason: "stop" })
      assert.deepInclude(one.usage, { prompt_tokens: 4, completion_tokens: 4 })
      const many = await client.completions.create({ model, prompt: ["a", "b"], n: 2, echo: true })
      assert.deepStrictEqual(many.choices.map(({ index, text }) => [index, text]), [[0, "aA"], [1, "aA"], [2, "bB"], [3, "bB"]])
      const ids = await client.completions.create({ model, prompt: [tokensOf("x"), tokensOf("y")], best_of: 2 })
      assert.deepStrictEqual(ids.choices.map(({ text }) => text), ["X", "Y"])
    }))

  it.live("completions.create streams, with usage", () =>
    using(async (client) => {
      let text = ""
      let total: number | undefined
      const stream = await client.completions.create({
        model,
        prompt: "once",
        stream: true,
        stream_options: { include_usage: true },
        logprobs: 1
      })
      const offsets: Array<number> = []
      for await (const { choices, usage } of stream) {
        text += choices[0]?.text ?? ""
        offsets.push(...choices[0]?.logprobs?.text_offset ?? [])
        total = usage?.total_tokens
      }
      assert.strictEqual(text, "ONCE")
      assert.deepStrictEqual(offsets, [0, 1, 2, 3])
      assert.strictEqual(total, 8)
    }))

  it.live("completions.create: logprobs", () =>
    using(async (client) => {
      const { choices: [choice] } = await client.completions.create({ model, prompt: "ab", logprobs: 2 })
      assert.deepStrictEqual(choice?.logprobs, {
        tokens: ["A", "B"],
        token_logprobs: [0, -0.5],
        top_logprobs: [{ A: 0, "?": -9 }, { B: -0.5, "?": -9 }],
        text_offset: [0, 1]
      })
    }))

  it.live("chat.completions.create: logprobs, whole and streamed", () =>
    using(async (client) => {
      const request = { model, messages: [{ role: "user" as const, content: "€" }], logprobs: true, top_logprobs: 1, stop: "|" }
      const { choices: [choice] } = await client.chat.completions.create(request)
      const content = choice?.logprobs?.content ?? []
      assert.strictEqual(content.map(({ token }) => token).join(""), choice?.message.content)
      assert.strictEqual(Buffer.from(content.flatMap(({ bytes }) => bytes ?? [])).toString(), choice?.message.content)
      assert.deepStrictEqual(content.map(({ top_logprobs }) => top_logprobs.length), content.map(() => 1))
      const streamed = []
      for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
        streamed.push(...chunk.choices[0]?.logprobs?.content ?? [])
      }
      assert.deepStrictEqual(streamed, content)
    }))

  it.live("chat.completions.stream: logprobs add up in its snapshot", () =>
    using(async (client) => {
      const stream = client.chat.completions.stream({ model, messages: [{ role: "user", content: "hi" }], logprobs: true })
      const { choices: [choice] } = await stream.finalChatCompletion()
      assert.strictEqual(choice?.logprobs?.content?.map(({ token }) => token).join(""), choice?.message.content)
    }))

  it.live("errors name their field", () =>
    using(async (client) => {
      const error = await client.completions.create({ model, prompt: "x", suffix: "y" }).catch((thrown: unknown) => thrown)
      assert.instanceOf(error, BadRequestError)
      if (error instanceof BadRequestError) assert.strictEqual(error.param, "suffix")
    }))
})
