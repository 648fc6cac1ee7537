import type { Usage as WireUsage } from "../../schema/openai/Common.ts"
import type { Usage } from "../domain/Usage.ts"

/** What the prefix cache did for a request. */
export const cacheTimings = (usage: Usage) => ({
  agent_turn_cache_hit: usage.agentTurnCacheHit ?? false,
  cached_prefix_tokens: usage.cachedTokens,
  prefilled_tokens: usage.promptTokens - usage.cachedTokens
})

/** Usage in the middle of a stream: new tokens are those of one choice so far. */
export const runningUsage = (promptTokens: number, completionTokens: number): WireUsage => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens
})

/** The member that a chunk has beside its choices where it tells its usage; `promptTokens` is undefined where it does not. */
export const usageMember = (promptTokens: number | undefined, completionTokens: number): string =>
  promptTokens === undefined ? "" : `,"usage":${JSON.stringify(runningUsage(promptTokens, completionTokens))}`

/** Usage as the Chat Completions and Completions APIs word it. */
export const wireUsage = (usage: Usage): WireUsage => ({
  prompt_tokens: usage.promptTokens,
  completion_tokens: usage.completionTokens,
  total_tokens: usage.promptTokens + usage.completionTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  ...(usage.reasoningTokens === undefined ? {} : { completion_tokens_details: { reasoning_tokens: usage.reasoningTokens } }),
  timings: cacheTimings(usage)
})
