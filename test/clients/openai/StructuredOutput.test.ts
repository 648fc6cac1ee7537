import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"
import { assertGrows, City, samplings, Weather } from "../structured.ts"

const model = "mashbox-demo"
const functions = <Call extends { readonly type: string }>(calls: ReadonlyArray<Call> | null | undefined) =>
  (calls ?? []).filter((call): call is Extract<Call, { readonly type: "function" }> => call.type === "function")

const messages = [{ role: "user" as const, content: "What is the weather in Paris?" }]

describe(`the official openai package's structured output${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("is what its zod schemas say, on Chat Completions, whole and streamed", () =>
    Effect.gen(function*() {
      const client = new OpenAI({ baseURL: `${yield* demoUrl}/v1`, apiKey: "unused", maxRetries: 0 })
      const tools = [zodFunction({ name: "get_weather", parameters: Weather }), zodFunction({ name: "get_city", parameters: City })]
      const toolChoice = { type: "function" as const, function: { name: "get_weather" } }
      yield* Effect.promise(async () => {
        for (const sampling of samplings) {
          const body = { model, messages, max_tokens: 400, ...sampling }
          const format = { ...body, response_format: zodResponseFormat(City, "city") }
          const whole = (await client.chat.completions.parse(format)).choices[0]?.message
          assert.deepStrictEqual(City.parse(whole?.parsed), City.parse(JSON.parse(whole?.content ?? "")))
          const partials: Array<unknown> = []
          const stream = client.chat.completions.stream(format).on("content.delta", ({ parsed }) => partials.push(structuredClone(parsed)))
          const streamed = (await stream.finalChatCompletion()).choices[0]?.message
          assert.deepStrictEqual(streamed?.parsed, whole?.parsed)
          assertGrows(partials, whole?.parsed)

          const forced = { ...body, tools, tool_choice: toolChoice, parallel_tool_calls: false }
          const [call, ...others] = functions((await client.chat.completions.parse(forced)).choices[0]?.message.tool_calls)
          assert.strictEqual(call?.function.name, "get_weather")
          assert.deepStrictEqual(others, [])
          assert.deepStrictEqual(
            Weather.parse(call?.function.parsed_arguments),
            Weather.parse(JSON.parse(call?.function.arguments ?? ""))
          )
          let deltas = ""
          const calls = client.chat.completions.stream(forced).on("tool_calls.function.arguments.delta", (event) => {
            deltas += event.arguments_delta
          })
          const [again] = functions((await calls.finalChatCompletion()).choices[0]?.message.tool_calls)
          assert.deepStrictEqual(again?.function.parsed_arguments, call?.function.parsed_arguments)
          assert.strictEqual(deltas, call?.function.arguments)

          const any = await client.chat.completions.parse({ ...body, tools, tool_choice: "required", parallel_tool_calls: false })
          const some = functions(any.choices[0]?.message.tool_calls)
          assert.isNotEmpty(some)
          for (const own of some) {
            assert.isTrue((own.function.name === "get_weather" ? Weather : City).safeParse(own.function.parsed_arguments).success)
          }
        }
      })
    }).pipe(Effect.provide(layerDemo)), 120_000)

  it.live.skipIf(!isDemoThere)("is what its zod schemas say, on Responses, whole and streamed", () =>
    Effect.gen(function*() {
      const client = new OpenAI({ baseURL: `${yield* demoUrl}/v1`, apiKey: "unused", maxRetries: 0 })
      const tools = [
        zodResponsesFunction({ name: "get_weather", parameters: Weather }),
        zodResponsesFunction({ name: "get_city", parameters: City })
      ]
      yield* Effect.promise(async () => {
        for (const sampling of samplings) {
          const body = { model, input: "What is the weather in Paris?", max_output_tokens: 400, ...sampling }
          const format = { ...body, text: { format: zodTextFormat(City, "city") } }
          const whole = await client.responses.parse(format)
          assert.deepStrictEqual(City.parse(whole.output_parsed), City.parse(JSON.parse(whole.output_text)))
          let text = ""
          const stream = client.responses.stream(format).on("response.output_text.delta", ({ delta }) => {
            text += delta
          })
          assert.deepStrictEqual((await stream.finalResponse()).output_parsed, whole.output_parsed)
          assert.strictEqual(text, whole.output_text)

          const forced = {
            ...body,
            tools,
            tool_choice: { type: "function" as const, name: "get_weather" },
            parallel_tool_calls: false
          }
          const calls = (await client.responses.parse(forced)).output.filter((item) => item.type === "function_call")
          assert.deepStrictEqual(calls.map(({ name }) => name), ["get_weather"])
          const [call] = calls
          assert(call !== undefined)
          assert.deepStrictEqual(Weather.parse(call.parsed_arguments), Weather.parse(JSON.parse(call.arguments)))
          const again = (await client.responses.stream(forced).finalResponse()).output.find((item) => item.type === "function_call")
          assert.deepStrictEqual(again?.parsed_arguments, call.parsed_arguments)
        }
      })
    }).pipe(Effect.provide(layerDemo)), 120_000)
})
