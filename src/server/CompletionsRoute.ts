import { Clock, Effect } from "effect"
import { randomUUID } from "node:crypto"
import * as OpenAiCompletions from "../dialect/OpenAiCompletions.ts"
import { InvalidRequest } from "../domain/Errors.ts"
import type { Prompt } from "../domain/GenerationRequest.ts"
import { samplingOf, ServedModel } from "../domain/ServedModel.ts"
import { Generation } from "../generation/Generation.ts"
import type { Prompts } from "../generation/Prompts.ts"
import { wireObject } from "./Body.ts"
import { answerChoices } from "./Generating.ts"
import { RequestRecord, sessionTag } from "./RequestRecord.ts"
import { randomSeed } from "./Seed.ts"
import { packTokenLists } from "./TokenLists.ts"

/** The prompt as text, for answers that begin with it. */
const promptText = (prompts: Prompts, prompt: Prompt): Effect.Effect<string> => {
  switch (prompt._tag) {
    case "Text":
      return Effect.succeed(prompt.text)
    case "Tokens":
      return prompts.textOf(prompt.tokens)
    case "Chat":
      return Effect.succeed("")
  }
}

/** `POST /v1/completions`. */
export const completions = Effect.gen(function*() {
  const record = yield* RequestRecord
  const model = yield* ServedModel
  const { prompts } = yield* Generation
  const wire = yield* packTokenLists(yield* wireObject, "prompt")
  const session = wire.fields["prompt_cache_key"]
  if (typeof session === "string" && session !== "") record.session = sessionTag(session)
  const decoded = yield* Effect.fromResult(
    OpenAiCompletions.decode(wire, { tenant: record.tenant, session: record.session, randomSeed: randomSeed(), ...samplingOf(model) })
  )
  const { bestOf, n, requests } = decoded
  if (bestOf > n && bestOf > model.slots) {
    return yield* new InvalidRequest({
      message: `best_of: this server decodes at most ${model.slots} choices at a time`,
      field: "best_of"
    })
  }
  const head: OpenAiCompletions.CompletionHead = {
    id: `cmpl-${randomUUID().replaceAll("-", "")}`,
    created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
    model: requests[0]?.model ?? model.id,
    seed: requests[0]?.sampling.seed ?? 0,
    n,
    bestOf,
    echo: decoded.echo ? yield* Effect.forEach(requests, ({ prompt }) => promptText(prompts, prompt)) : undefined,
    logprobs: decoded.logprobs
  }
  return yield* answerChoices({
    requests,
    stream: decoded.stream,
    ignored: decoded.ignored,
    encoder: (promptTokens) =>
      OpenAiCompletions.chunks(head, {
        choices: requests.length * n,
        includeUsage: decoded.includeUsage,
        usageOf: decoded.continuousUsage ? promptTokens : undefined
      }),
    whole: (choices) => OpenAiCompletions.completion(head, choices)
  })
})
