import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import OpenAI from "openai"
import { demoNeeds, demoUrl, isDemoThere, layerDemo } from "../../support/DemoServer.ts"

const readTokens = Schema.decodeUnknownPromise(Schema.Struct({ tokens: Schema.Array(Schema.Int) }))
const readPrompt = Schema.decodeUnknownPromise(Schema.Struct({ prompt: Schema.String }))

describe(`the bundled model${demoNeeds}`, () => {
  it.live.skipIf(!isDemoThere)("completes, scores and tokenizes with the official openai package", () =>
    Effect.gen(function*() {
      const url = yield* demoUrl
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0 })
      const post = async (path: string, body: object): Promise<unknown> =>
        (await fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).json()
      const model = "mashbox-demo"
      const messages = [{ role: "user" as const, content: "What is the capital of France?" }]
      const answer = "The capital of France is Paris."
      yield* Effect.promise(async () => {
        const { prompt } = await readPrompt(await post("/apply-template", { messages }))
        const { tokens } = await readTokens(await post("/tokenize", { messages }))
        assert.deepStrictEqual((await readTokens(await post("/tokenize", { content: prompt }))).tokens, tokens)
        assert.strictEqual((await readPrompt(await post("/detokenize", { tokens }))).prompt, prompt)

        const text = await client.completions.create({ model, prompt, max_tokens: 40, logprobs: 3 })
        assert.strictEqual(text.choices[0]?.text, answer)
        assert.strictEqual(text.usage?.prompt_tokens, tokens.length)
        assert.strictEqual(text.choices[0]?.logprobs?.tokens?.join(""), answer)
        const ids = await client.completions.create({ model, prompt: [[...tokens], [...tokens]], max_tokens: 40 })
        assert.deepStrictEqual(ids.choices.map((choice) => choice.text), [answer, answer])

        const chat = await client.chat.completions.create({ model, messages, max_tokens: 40, logprobs: true, top_logprobs: 5 })
        const content = chat.choices[0]?.logprobs?.content ?? []
        assert.strictEqual(chat.choices[0]?.message.content, answer)
        assert.strictEqual(Buffer.from(content.flatMap(({ bytes }) => bytes ?? [])).toString(), answer)
        for (const { logprob, token, top_logprobs } of content) {
          assert.strictEqual(top_logprobs[0]?.token, token, "greedy takes the likeliest")
          assert.strictEqual(top_logprobs[0]?.logprob, logprob)
          assert.lengthOf(top_logprobs, 5)
        }
        const scored = text.choices[0]?.logprobs?.token_logprobs ?? []
        assert.deepStrictEqual(content.map(({ logprob }) => logprob), scored, "the same prompt has the same probabilities")

        const goOn = {
          model,
          messages: [...messages, { role: "assistant" as const, content: "The capital of" }],
          max_tokens: 40,
          continue_final_message: true
        }
        const open = await client.chat.completions.create(goOn)
        assert.strictEqual(open.choices[0]?.message.content, " France is Paris.")
      })
    }).pipe(
      Effect.provide(layerDemo)
    ))
})
