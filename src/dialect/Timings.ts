import type { Timings } from "../../schema/openai/Common.ts"
import type { Usage } from "../domain/Usage.ts"

const perSecond = (count: number, milliseconds: number) => count > 0 && milliseconds > 0 ? count * 1000 / milliseconds : null

/** What a generation cost, as llama-server words it. */
export const wireTimings = (usage: Usage): Timings => {
  const prefilled = usage.promptTokens - usage.cachedTokens
  return {
    prompt_n: prefilled,
    prompt_ms: usage.promptMs,
    prompt_per_second: perSecond(prefilled, usage.promptMs),
    predicted_n: usage.completionTokens,
    predicted_ms: usage.generationMs,
    predicted_per_second: perSecond(usage.completionTokens - 1, usage.generationMs),
    cache_n: usage.cachedTokens,
    queue_ms: usage.queueMs
  }
}
