import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import { checkChatStream } from "../../support/ChatStreamChecker.ts"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"

const tools = [{
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
  }
}]

describe(`the bundled model${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)(
    "chats, with tools, in several choices, and tells how its prompt is prefilled",
    () =>
      Effect.gen(function*() {
        const url = `${yield* demoUrl}/v1`
        const client = new OpenAI({ baseURL: url, apiKey: "unused", maxRetries: 0 })
        const model = "mashbox-demo"
        const messages = [{ role: "user" as const, content: "What is the capital of France?" }]
        const answer = "The capital of France is Paris."
        const stream = async (body: object) =>
          (await fetch(`${url}/chat/completions`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ messages, max_tokens: 40, stream: true, stream_options: { include_usage: true }, ...body })
          })).text()
        yield* Effect.promise(async () => {
          assert.strictEqual(await client.chat.completions.stream({ model, messages, max_tokens: 40 }).finalContent(), answer)

          const both = checkChatStream(await stream({ n: 2, return_progress: true }), { choices: 2, includeUsage: true })
          assert.deepStrictEqual(both.choices.map(({ content }) => content), [answer, answer])
          assert.strictEqual(both.progress.at(-1)?.processed, both.usage?.prompt_tokens)
          const sampled = { n: 2, temperature: 1, seed: 7 }
          const once = checkChatStream(await stream(sampled), { choices: 2, includeUsage: true })
          const again = checkChatStream(await stream({ ...sampled, n: 1, seed: 8 }), { includeUsage: true })
          assert.strictEqual(once.choices[1]?.content, again.choices[0]?.content, "choice 1 has the seed after choice 0's")

          const called = await client.chat.completions.create({ model, messages, tools, max_tokens: 60 })
          const streamed = checkChatStream(await stream({ tools, max_tokens: 60 }), { includeUsage: true }).choices[0]
          assert.strictEqual(streamed?.content, called.choices[0]?.message.content ?? "")
          assert.deepStrictEqual(
            streamed?.toolCalls.map((call) => [call.name, call.arguments]),
            (called.choices[0]?.message.tool_calls ?? []).map((call) =>
              call.type === "function" ? [call.function.name, call.function.arguments] : []
            )
          )
          assert.isAbove(called.usage?.prompt_tokens ?? 0, both.usage?.prompt_tokens ?? 0, "the tools are in the prompt")
        })
      }).pipe(
        Effect.provide(layerDemo)
      )
  )
})
