import type { ScoredToken, TokenLogprobs } from "../domain/Logprobs.ts"

const utf8 = new TextDecoder()

const scored = ({ bytes, logprob }: ScoredToken) => ({
  token: utf8.decode(bytes),
  bytes: Array.from(bytes),
  // JSON has no infinity; OpenAI's own stand-in for it.
  logprob: Math.max(logprob, -9999)
})

/** Log probabilities as the Responses API words them. */
export const wireLogprobs = (tokens: ReadonlyArray<TokenLogprobs>) =>
  tokens.map((token) => ({ ...scored(token), top_logprobs: token.top.map(scored) }))
