/** What one generation cost, in tokens and milliseconds. */
export interface Usage {
  readonly promptTokens: number
  /** Prompt tokens that were served from the prefix cache. */
  readonly cachedTokens: number
  /** Whether they include a turn that the model generated; absent where it is not known, as without a prefix cache. */
  readonly agentTurnCacheHit?: boolean
  readonly completionTokens: number
  /** Of them, those of the reasoning, its tags included; absent: 0. */
  readonly reasoningTokens?: number
  /** From acceptance until the request ran. */
  readonly queueMs: number
  /** From the start of the run to the first new token. */
  readonly promptMs: number
  /** From the first to the last new token. */
  readonly generationMs: number
}

/** Usage of several answers to one prompt: the prompt counts once, new tokens are summed, and the slowest answer gives the times. There is at least one. */
export const combineChoices = (usages: ReadonlyArray<Usage>): Usage =>
  usages.reduce((left, right) => ({
    ...left,
    completionTokens: left.completionTokens + right.completionTokens,
    reasoningTokens: (left.reasoningTokens ?? 0) + (right.reasoningTokens ?? 0),
    queueMs: Math.max(left.queueMs, right.queueMs),
    promptMs: Math.max(left.promptMs, right.promptMs),
    generationMs: Math.max(left.generationMs, right.generationMs)
  }))

/** Usage of the answers to several prompts: tokens are summed, and the slowest answer gives the times. */
export const combinePrompts = (usages: ReadonlyArray<Usage>): Usage => ({
  ...combineChoices(usages),
  promptTokens: usages.reduce((total, usage) => total + usage.promptTokens, 0),
  cachedTokens: usages.reduce((total, usage) => total + usage.cachedTokens, 0)
})

/** How far a prompt is prefilled. */
export interface PrefillProgress {
  /** Prompt tokens. */
  readonly total: number
  /** Of them, those in the KV cache by now. */
  readonly processed: number
  /** Milliseconds since the run started. */
  readonly elapsedMs: number
}
