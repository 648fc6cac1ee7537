/** What one generation cost, in tokens and milliseconds. */
export interface Usage {
  readonly promptTokens: number
  /** Prompt tokens that were served from the prefix cache. */
  readonly cachedTokens: number
  readonly completionTokens: number
  /** From acceptance until the request ran. */
  readonly queueMs: number
  /** From the start of the run to the first new token. */
  readonly promptMs: number
  /** From the first to the last new token. */
  readonly generationMs: number
}
