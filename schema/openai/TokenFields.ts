import { Schema } from "effect"
import { count } from "./Common.ts"

/** Most alternatives that log probabilities come with. */
const mostTopLogprobs = 20

export const topLogprobs = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: mostTopLogprobs })).annotate({
  expected: `an integer from 0 to ${mostTopLogprobs}`
})

const mostStopTokens = 256

/** vLLM's fields about single tokens, under its names, on every route of OpenAI's that generates. */
export const tokenFields = {
  min_tokens: Schema.optionalKey(
    count(0).annotate({ description: "No end of turn, stop token or stop string before this many new tokens.", default: 0 })
  ),
  ignore_eos: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Go on after the tokens that end a turn, up to max_tokens.", default: false })
  ),
  stop_token_ids: Schema.optionalKey(
    Schema.Array(count(0)).check(Schema.isMaxLength(mostStopTokens)).annotate({
      expected: `a list of at most ${mostStopTokens} token ids`,
      description: "Tokens that end the output, beside those that end a turn. The one that did is the choice's stop_reason."
    })
  ),
  include_stop_str_in_output: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "The stop string that ends the output stays in it.", default: false })
  ),
  skip_special_tokens: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "false: control tokens show as their text.", default: true })
  ),
  return_token_ids: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Give prompt_token_ids and token_ids with the answer; in a stream, with the chunk that has the finish_reason.",
      default: false
    })
  )
}

/** Token ids of an answer, where they were asked for. */
export const tokenIds = Schema.Array(Schema.Int)

/** What ended the output, where it was a stop string or one of stop_token_ids. */
export const stopReason = Schema.Union([Schema.String, Schema.Int])

const scoredToken = {
  token: Schema.String.annotate({ description: "The token's text; bytes that are no whole character are written \\xNN." }),
  logprob: Schema.Finite.annotate({ description: "Natural log of its probability before temperature and penalties; -9999 at the least." }),
  bytes: Schema.Array(Schema.Int).annotate({ description: "The token's bytes." })
}

/** A token of the text with its log probability and the likeliest tokens in its place. */
export const TokenLogprob = Schema.Struct({
  ...scoredToken,
  top_logprobs: Schema.Array(Schema.Struct(scoredToken)).annotate({ description: "The likeliest tokens, best first." })
}).annotate({ identifier: "TokenLogprob" })
export type TokenLogprob = typeof TokenLogprob.Type
