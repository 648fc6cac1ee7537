/** A token's natural log probability in the model's own distribution, before anything that shapes sampling, with the likeliest tokens. */
export interface EngineLogprobs {
  readonly logprob: number
  /** Best first; as many as the request asked for. */
  readonly top: ReadonlyArray<{ readonly token: number; readonly logprob: number }>
}
