import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { Completion } from "../../schema/openai/Completions.ts"

const read = Schema.decodeUnknownSync(Schema.fromJsonString(Completion))

/** What one choice of a stream came to. */
export interface StreamedChoice {
  text: string
  finish: string | null
  readonly logprobs: Array<NonNullable<Completion["choices"][number]["logprobs"]>>
  last: Completion["choices"][number] | undefined
}

/**
 * Reads a streamed text completion and checks its grammar: one line of valid JSON per event, the same id, time and model on all, text of a choice only before
 * its one finish, a usage event with no choices after all of them where there is one, then `[DONE]` and nothing more.
 */
export const readCompletionsStream = (body: string) => {
  assert.isTrue(body.endsWith("data: [DONE]\n\n"), body.slice(-200))
  const events = body.slice(0, -"data: [DONE]\n\n".length).split("\n\n").filter((frame) => frame !== "" && !frame.startsWith(":")).map(
    (frame) => {
      assert.match(frame, /^data: [^\n]+$/)
      return read(frame.slice("data: ".length))
    }
  )
  const choices = new Map<number, StreamedChoice>()
  let usage: Completion["usage"]
  for (const event of events) {
    assert.deepStrictEqual([event.id, event.created, event.model], [events[0]?.id, events[0]?.created, events[0]?.model])
    assert.isUndefined(usage, "nothing follows the usage")
    if (event.choices.length === 0) {
      assert.isDefined(event.usage)
      usage = event.usage
      continue
    }
    assert.isUndefined(event.usage)
    assert.strictEqual(event.choices.length, 1)
    for (const choice of event.choices) {
      const own = choices.get(choice.index) ?? { text: "", finish: null, logprobs: [], last: undefined }
      choices.set(choice.index, own)
      assert.isNull(own.finish, "nothing follows the finish")
      own.text += choice.text
      own.finish = choice.finish_reason
      if (choice.logprobs !== null) own.logprobs.push(choice.logprobs)
      own.last = choice
    }
  }
  for (const choice of choices.values()) assert.include(["stop", "length"], choice.finish)
  return { choices: [...choices].toSorted(([a], [b]) => a - b).map(([, choice]) => choice), usage }
}
