import Anthropic from "@anthropic-ai/sdk"
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod"
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"
import { samplings, Town, Weather } from "../structured.ts"

const messages = [{ role: "user" as const, content: "What is the weather in Paris?" }]

describe(`the official @anthropic-ai/sdk package's structured output${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("is what its zod schemas say, whole and streamed", () =>
    Effect.gen(function*() {
      const client = new Anthropic({ baseURL: yield* demoUrl, apiKey: "unused", maxRetries: 0 })
      yield* Effect.promise(async () => {
        // The API has no seed: only the best answers are the same twice.
        for (const { temperature } of samplings) {
          const body = { model: "mashbox-demo", max_tokens: 400, messages, temperature, output_config: { format: zodOutputFormat(Town) } }
          const whole = await client.messages.parse(body)
          const [block] = whole.content
          assert(block?.type === "text")
          assert.deepStrictEqual(Town.parse(whole.parsed_output), Town.parse(JSON.parse(block.text)))
          let text = ""
          const stream = client.messages.stream(body).on("text", (delta) => {
            text += delta
          })
          const streamed = await stream.finalMessage()
          assert.deepStrictEqual(Town.parse(streamed.parsed_output), Town.parse(JSON.parse(text)))
          if (temperature === 0) assert.deepStrictEqual(streamed.parsed_output, whole.parsed_output)
        }
      })
    }).pipe(Effect.provide(layerDemo)), 120_000)

  it.live.skipIf(!isDemoThere)("is a valid call where a zod tool is forced, whole and streamed", () =>
    Effect.gen(function*() {
      const client = new Anthropic({ baseURL: yield* demoUrl, apiKey: "unused", maxRetries: 0 })
      const tool = (name: string, strict: boolean) =>
        betaZodTool({ name, description: "The weather of a city", inputSchema: Weather, strict, run: () => "sunny" })
      const tools = [tool("get_weather", true), tool("get_forecast", true)]
      yield* Effect.promise(async () => {
        for (const { temperature } of samplings) {
          for (const choice of [{ type: "any" as const }, { type: "tool" as const, name: "get_forecast" }]) {
            const body = {
              model: "mashbox-demo",
              max_tokens: 400,
              messages,
              temperature,
              tools,
              tool_choice: { ...choice, disable_parallel_tool_use: true }
            }
            const whole = await client.beta.messages.create(body)
            let json = ""
            const stream = client.beta.messages.stream(body).on("inputJson", (delta) => {
              json += delta
            })
            const streamed = await stream.finalMessage()
            for (const message of [whole, streamed]) {
              assert.strictEqual(message.stop_reason, "tool_use")
              const calls = message.content.filter((block) => block.type === "tool_use")
              assert.strictEqual(calls.length, 1)
              if (choice.type === "tool") assert.strictEqual(calls[0]?.name, choice.name)
              Weather.parse(calls[0]?.input)
            }
            const call = streamed.content.find((block) => block.type === "tool_use")
            assert.deepStrictEqual(JSON.parse(json), call?.input)
          }
        }
      })
    }).pipe(Effect.provide(layerDemo)), 120_000)
})
