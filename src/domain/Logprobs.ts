/** A token with its natural log probability under the model's own distribution: the log softmax of its logits before bias, penalties, temperature and filters. */
export interface ScoredToken {
  readonly token: number
  /** What the token stands for; a part of a character where characters span tokens, a control token's own text. */
  readonly bytes: Uint8Array
  readonly logprob: number
}

/** An output token and the likeliest tokens in its place, best first. */
export interface TokenLogprobs extends ScoredToken {
  readonly top: ReadonlyArray<ScoredToken>
}

/** Most alternatives per token that an engine reports. */
export const mostTopLogprobs = 20
