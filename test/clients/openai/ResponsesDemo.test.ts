import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"
import { checkResponsesStream } from "../../support/ResponsesStreamChecker.ts"

const weather = {
  type: "function" as const,
  name: "get_weather",
  description: "Current weather of a city",
  strict: false,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

describe(`the bundled model${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("answers on Responses: text, a stream, reasoning, a tool call and its result", () =>
    Effect.gen(function*() {
      const baseURL = `${yield* demoUrl}/v1`
      const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0 })
      yield* Effect.promise(async () => {
        const model = "mashbox-demo"
        const input = "What is the capital of France?"
        const answer = "The capital of France is Paris."
        const whole = await client.responses.create({ model, input, max_output_tokens: 40 })
        assert.strictEqual(whole.output_text, answer)
        const { input_tokens } = await client.responses.inputTokens.count({ model, input })
        assert.strictEqual(whole.usage?.input_tokens, input_tokens)
        const streamed = await client.responses.stream({ model, input, max_output_tokens: 40 }).finalResponse()
        assert.strictEqual(streamed.output_text, answer)

        const raw = await fetch(`${baseURL}/responses`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ input, reasoning: { effort: "high" }, max_output_tokens: 120, stream: true })
        })
        const { response } = checkResponsesStream(await raw.text())
        assert.strictEqual(response.output[0]?.type, "reasoning")
        assert.isAbove(response.usage?.output_tokens_details.reasoning_tokens ?? 0, 0)

        const called = await client.responses.create({
          model,
          input: "What is the weather in Paris?",
          tools: [weather],
          max_output_tokens: 60
        })
        const call = called.output.find((item) => item.type === "function_call")
        assert.ok(call !== undefined)
        assert.strictEqual(call.name, "get_weather")
        assert.deepStrictEqual(JSON.parse(call.arguments), { city: "Paris" })
        const after = await client.responses.create({
          model,
          previous_response_id: called.id,
          input: [{ type: "function_call_output", call_id: call.call_id, output: "{\"temperature\": 21}" }],
          tools: [weather],
          max_output_tokens: 60
        })
        assert.strictEqual(after.status, "completed")
        assert.notStrictEqual(after.output_text, "")
      })
    }).pipe(
      Effect.provide(layerDemo)
    ))
})
