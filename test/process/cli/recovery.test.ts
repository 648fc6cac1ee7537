import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { ChatCompletion } from "../../../schema/openai/Chat.ts"
import { chat, serve } from "./program.ts"

const Health = Schema.Struct({
  worker_pid: Schema.optionalKey(Schema.Int),
  worker_restarts: Schema.Int,
  live_rows: Schema.Int,
  waiting: Schema.Int
})
const decodeHealth = Schema.decodeUnknownSync(Health)
const decodeAnswer = Schema.decodeUnknownSync(ChatCompletion)

const health = async (url: string) => decodeHealth(await (await fetch(`${url}/health`)).json())

const story = (subject: number) => ({
  messages: [{ role: "user", content: `Tell me a story about ${subject} shy dragons.` }],
  max_tokens: 400,
  temperature: 0.7,
  seed: subject
})

const textOf = async (response: Response) => {
  assert.strictEqual(response.status, 200)
  return decodeAnswer(await response.json()).choices[0]?.message.content ?? ""
}

describe("a killed engine", () => {
  it("answers all 8 waiting requests after one restart, with the same text", async () => {
    await using server = await serve(["--ctx", "2048"])
    const subjects = Array.from({ length: 8 }, (_, i) => i + 2)
    const expected = await Promise.all(subjects.map(async (subject) => textOf(await chat(server.url, story(subject)))))

    const answers = Promise.all(subjects.map(async (subject) => textOf(await chat(server.url, story(subject)))))
    for (;;) {
      const { live_rows, waiting, worker_pid } = await health(server.url)
      if (worker_pid !== undefined && live_rows + waiting === 8) {
        process.kill(worker_pid, "SIGKILL")
        break
      }
    }
    assert.deepStrictEqual(await answers, expected)
    assert.strictEqual((await health(server.url)).worker_restarts, 1)
  })
})
