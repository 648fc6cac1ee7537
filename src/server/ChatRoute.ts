import { Clock, Effect } from "effect"
import { randomUUID } from "node:crypto"
import { decode } from "../dialect/OpenAiChat.ts"
import { chunks, completion, type ResponseHead } from "../dialect/OpenAiChatAnswer.ts"
import { samplingOf, ServedModel } from "../domain/ServedModel.ts"
import { wireObject } from "./Body.ts"
import { answerChoices } from "./Generating.ts"
import { RequestRecord, sessionTag } from "./RequestRecord.ts"
import { randomSeed } from "./Seed.ts"

/** `POST /v1/chat/completions`. */
export const chatCompletions = Effect.gen(function*() {
  const record = yield* RequestRecord
  const model = yield* ServedModel
  const wire = yield* wireObject
  const session = wire.fields["prompt_cache_key"]
  if (typeof session === "string" && session !== "") record.session = sessionTag(session)
  const decoded = yield* Effect.fromResult(
    decode(wire, { tenant: record.tenant, session: record.session, randomSeed: randomSeed(), ...samplingOf(model) })
  )
  const head: ResponseHead = {
    id: `chatcmpl-${randomUUID().replaceAll("-", "")}`,
    created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
    model: decoded.request.model ?? model.id
  }
  const form = decoded.asFunctions ? "functions" : "tools"
  return yield* answerChoices({
    requests: [decoded.request],
    stream: decoded.stream,
    ignored: decoded.ignored,
    encoder: (promptTokens) =>
      chunks(head, {
        choices: decoded.request.choices ?? 1,
        form,
        includeUsage: decoded.includeUsage,
        usageOf: decoded.continuousUsage ? promptTokens : undefined,
        returnProgress: decoded.returnProgress
      }),
    whole: (choices) => completion(head, choices, form)
  })
})
