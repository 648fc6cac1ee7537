import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { generateObject, generateText, Output, streamObject, streamText, tool } from "ai"
import { Effect } from "effect"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"
import { assertGrows, samplings, Town, Weather } from "../structured.ts"

const id = "mashbox-demo"

const providers = {
  "openai, on Responses": (baseURL: string) => createOpenAI({ baseURL, apiKey: "unused" }).responses(id),
  "openai, on Chat Completions": (baseURL: string) => createOpenAI({ baseURL, apiKey: "unused" }).chat(id),
  "openai-compatible": (baseURL: string) =>
    createOpenAICompatible({ name: "mashbox", baseURL, supportsStructuredOutputs: true }).chatModel(id),
  anthropic: (baseURL: string) => createAnthropic({ baseURL, apiKey: "unused" }).messages(id)
}

// Not every provider sends on strict and seed.
globalThis.AI_SDK_LOG_WARNINGS = false

const all = async <A>(parts: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const found: Array<A> = []
  for await (const part of parts) found.push(part)
  return found
}

describe(`the AI SDK's structured output${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("is what its schemas say with every provider, whole and streamed", () =>
    Effect.gen(function*() {
      const baseURL = `${yield* demoUrl}/v1`
      yield* Effect.promise(async () => {
        for (const [name, modelAt] of Object.entries(providers)) {
          for (const sampling of samplings) {
            const ask = {
              model: modelAt(baseURL),
              prompt: "What is the weather in Paris?",
              maxOutputTokens: 400,
              maxRetries: 0,
              ...sampling
            }
            const output = Output.object({ schema: Town })
            Town.parse((await generateText({ ...ask, output })).output)
            const streamed = streamText({ ...ask, output })
            const partials = await all(streamed.partialOutputStream)
            assertGrows(partials, Town.parse(await streamed.output), name)
            Town.parse((await generateObject({ ...ask, schema: Town })).object)
            const objects = streamObject({ ...ask, schema: Town })
            const partialObjects = await all(objects.partialObjectStream)
            assertGrows(partialObjects, Town.parse(await objects.object), name)

            const tools = {
              get_weather: tool({ description: "The weather of a city", inputSchema: Weather, strict: true, execute: () => "sunny" }),
              get_forecast: tool({ description: "The forecast of a city", inputSchema: Weather, strict: true, execute: () => "sunny" })
            }
            for (const toolChoice of ["required" as const, { type: "tool" as const, toolName: "get_forecast" as const }]) {
              const own = { ...ask, tools, toolChoice }
              const stream = streamText(own)
              for (const calls of [(await generateText(own)).toolCalls, await stream.toolCalls]) {
                assert.isNotEmpty(calls, name)
                for (const call of calls) {
                  assert.isFalse(call.dynamic === true, JSON.stringify(call))
                  Weather.parse(call.input)
                  if (toolChoice !== "required") assert.strictEqual(call.toolName, "get_forecast")
                }
              }
            }
          }
        }
      })
    }).pipe(Effect.provide(layerDemo)), 240_000)
})
