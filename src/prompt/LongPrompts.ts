import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { Worker } from "node:worker_threads"
import { TemplateError } from "../domain/Errors.ts"
import { CurrentTenant } from "../domain/Tenant.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { programPath } from "../ProgramPath.ts"
import type { TemplateSource } from "./ChatRenderer.ts"
import { type LongPrompt, threadData, type Work } from "./PromptThread.ts"
import type { ReasoningState } from "./Reasoning.ts"
import { ThreadJobs } from "./ThreadJobs.ts"

/** Old-generation limit of the thread; a prompt that needs more ends the thread, not the process. */
const heapMib = 1024

/** Prompts of more UTF-16 units leave the event loop alone: about 5 ms of it. */
export const longPrompt = 8 * 1024

export interface EncodedPrompt {
  readonly tokens: Int32Array
  /** Where it leaves the model. */
  readonly reasoning: ReasoningState
}

/** Starts a thread whose protocol is that of `promptThreadEntry.ts`. */
export type StartThread = () => Worker

/**
 * Renders and encodes long prompts in another thread, with the same results as the chat template and the tokenizer in this one. Prompts take turns
 * there, and interrupting an effect ends its work.
 */
export class LongPrompts extends Context.Service<LongPrompts, {
  readonly encode: (prompt: LongPrompt) => Effect.Effect<EncodedPrompt, TemplateError>
  /** The rendered text. */
  readonly render: (prompt: LongPrompt) => Effect.Effect<string, TemplateError>
}>()("mashbox/prompt/LongPrompts") {
  /** The thread is started with the first prompt, again after it died, and ends with the scope. */
  static readonly make = (start: StartThread): Effect.Effect<LongPrompts["Service"], never, Scope.Scope> =>
    Effect.map(
      Effect.acquireRelease(Effect.sync(() => new ThreadJobs(start)), (jobs) => Effect.promise(() => jobs.close())),
      (jobs) => {
        const run = Effect.fnUntraced(function*(prompt: LongPrompt, want: Work["want"]) {
          const now = yield* Clock.currentTimeMillis
          const tenant = yield* CurrentTenant
          const result = yield* jobs.run({ prompt, now, tenant, want })
          if ("refused" in result) return yield* new TemplateError({ message: result.refused })
          return result
        })
        return LongPrompts.of({
          encode: (prompt) => run(prompt, "tokens"),
          render: (prompt) => Effect.map(run(prompt, "text"), ({ text }) => text)
        })
      }
    )

  static readonly layer = (vocabulary: Vocabulary, template: TemplateSource): Layer.Layer<LongPrompts> =>
    Layer.effect(LongPrompts, LongPrompts.make(startThread(vocabulary, template)))
}

/** The thread for a model. */
export const startThread = (vocabulary: Vocabulary, template: TemplateSource): StartThread => () =>
  new Worker(programPath("prompt/promptThreadEntry.ts", "prompts"), {
    workerData: threadData(vocabulary, template),
    name: "mashbox-prompts",
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMib }
  })
