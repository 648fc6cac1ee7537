import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod"
import { City } from "../../clients/structured.ts"
import { checkChatStream } from "../../support/ChatStreamChecker.ts"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"
import { valid } from "../../support/SchemaOracle.ts"

const model = "mashbox-demo"
const messages = [{ role: "user" as const, content: "Tell me about Paris." }]

const schema = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 12 },
    population: { type: "integer", minimum: 1, maximum: 99_999_999 },
    code: { type: "string", pattern: "^[A-Z]{2}-\\d{3}$" }
  },
  required: ["name", "population", "code"],
  additionalProperties: false
} as const

interface Failure {
  readonly error: { readonly message: string; readonly param: string }
}

interface Choices {
  readonly choices: ReadonlyArray<
    { readonly text?: string; readonly message?: { readonly content: string }; readonly finish_reason: string }
  >
}

describe(`answers of the bundled model${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("are what their request says, in every dialect, however they are sampled", () =>
    Effect.gen(function*() {
      const url = yield* demoUrl
      const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0 })
      const anthropic = new Anthropic({ baseURL: url, apiKey: "unused", maxRetries: 0 })
      const post = (path: string, body: object) =>
        fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
      const chat = async (body: object): Promise<string> => {
        const text = await (await post("/v1/chat/completions", { messages, max_tokens: 300, ...body })).text()
        const { choices: [choice] }: Choices = JSON.parse(text)
        assert.strictEqual(choice?.finish_reason, "stop", text)
        return choice?.message?.content ?? ""
      }

      yield* Effect.promise(async () => {
        for (const sampling of [{}, { temperature: 1.5, seed: 1 }, { temperature: 1.5, seed: 2 }]) {
          const parsed = await openai.chat.completions.parse({
            model,
            messages,
            ...sampling,
            response_format: zodResponseFormat(City, "city")
          })
          assert.deepStrictEqual(parsed.choices[0]?.message.parsed, City.parse(JSON.parse(parsed.choices[0]?.message.content ?? "")))

          const response = await openai.responses.parse({
            model,
            input: "Paris?",
            ...sampling,
            text: { format: zodTextFormat(City, "city") }
          })
          assert.isTrue(City.safeParse(response.output_parsed).success)
          assert.strictEqual(response.text?.format?.type, "json_schema")

          const message = await anthropic.messages.create({
            model,
            max_tokens: 300,
            messages,
            ...sampling,
            output_config: { format: { type: "json_schema", schema } }
          })
          const [block] = message.content
          assert.strictEqual(message.stop_reason, "end_turn")
          assert.isTrue(block?.type === "text" && valid(schema, JSON.parse(block.text)))

          const format = { type: "json_schema", json_schema: { name: "n", schema } }
          const text = await chat({ response_format: format, ...sampling })
          assert.isTrue(valid(schema, JSON.parse(text)), text)
          const streamed = await post("/v1/chat/completions", {
            messages,
            max_tokens: 300,
            stream: true,
            response_format: format,
            ...sampling
          })
          assert.strictEqual(checkChatStream(await streamed.text()).choices[0]?.content, text)

          const open: Choices = JSON.parse(
            await (await post("/v1/chat/completions", { messages, max_tokens: 60, response_format: { type: "json_object" }, ...sampling }))
              .text()
          )
          // So small a model may write without an end where nothing ends it.
          const object = open.choices[0]
          assert.match(object?.message?.content ?? "", /^\{(\}|")/)
          if (object?.finish_reason === "stop") assert.isObject(JSON.parse(object.message?.content ?? ""))
          assert.isTrue(valid(schema, JSON.parse(await chat({ guided_json: JSON.stringify(schema), ...sampling }))))
          assert.match(await chat({ guided_regex: "(red|green|blue)-\\d{3}", ...sampling }), /^(red|green|blue)-\d{3}$/)
          assert.include(["yes", "no", "perhaps, é"], await chat({ guided_choice: ["yes", "no", "perhaps, é"], ...sampling }))
          assert.include(["a", "b"], await chat({ structured_outputs: { choice: ["a", "b"] }, ...sampling }))
          assert.match(
            await chat({ grammar: "root ::= [a-c]{2,4} \"!\" item*\nitem ::= \" \" [0-9]", ...sampling, stop: " " }),
            /^[a-c]{2,4}!$/
          )
          assert.match(
            await chat({ guided_grammar: "start: WORD \"=\" INT\nWORD: /[a-z]{1,5}/\nINT: /[0-9]{1,3}/", ...sampling }),
            /^[a-z]{1,5}=\d{1,3}$/
          )

          const tools = [{
            type: "function",
            function: { name: "get_weather", parameters: { type: "object", properties: {}, additionalProperties: false } }
          }]
          const both: Choices = JSON.parse(
            await (await post("/v1/chat/completions", { messages, max_tokens: 300, tools, response_format: format, ...sampling })).text()
          )
          const { finish_reason: reason, message: own } = both.choices[0] ?? {}
          if (reason !== "tool_calls") {
            assert.strictEqual(reason, "stop")
            assert.isTrue(valid(schema, JSON.parse(own?.content ?? "")), own?.content)
          }

          const completion: Choices = JSON.parse(
            await (await post("/v1/completions", { prompt: "The colour is ", max_tokens: 20, guided_choice: ["red", "blue"], ...sampling }))
              .text()
          )
          assert.include(["red", "blue"], completion.choices[0]?.text)
        }
      })

      yield* Effect.promise(async () => {
        const cut: Choices = JSON.parse(
          await (await post("/v1/chat/completions", {
            messages,
            max_tokens: 5,
            response_format: { type: "json_schema", json_schema: { name: "n", schema } }
          })).text()
        )
        assert.strictEqual(cut.choices[0]?.finish_reason, "length")

        const refused = await post("/v1/chat/completions", {
          messages,
          response_format: { type: "json_schema", json_schema: { name: "n", schema: { properties: { a: { pattern: "(a)\\1" } } } } }
        })
        const { error }: Failure = JSON.parse(await refused.text())
        assert.deepStrictEqual([refused.status, error.param], [400, "response_format.json_schema.schema.properties.a.pattern"])

        // Automata of 2^n states: the engine gives up, and says on what.
        const complex = await post("/v1/chat/completions", {
          messages,
          guided_regex: "(?=.*a.{14}b)(?=.*c.{15}d)(?=.*e.{13}f)(?!.*g.{12}h).{40,}"
        })
        const { error: given }: Failure = JSON.parse(await complex.text())
        assert.deepStrictEqual([complex.status, given.param], [400, "guided_regex"])
      })
    }).pipe(Effect.provide(layerDemo)), 240_000)
})
