import { Schema } from "effect"
import { count, inertFields, samplingFields, streamFields, Timings, Usage } from "./Common.ts"
import { formatFields, responseFormatField } from "./FormatFields.ts"
import { stopReason, tokenFields, tokenIds, topLogprobs } from "./TokenFields.ts"

const tokens = Schema.Array(count(0))

export const CompletionRequest = Schema.Struct({
  model: Schema.optionalKey(Schema.String.annotate({
    description: "The id that GET /v1/models shows; another one gets 404. Leaving it out means the one model this server runs."
  })),
  prompt: Schema.Union([Schema.String, tokens, Schema.Array(Schema.String), Schema.Array(tokens)]).annotate({
    expected: "a string, a list of strings, a list of token ids or a list of such lists",
    description:
      "What to continue: a text, token ids, or a list of either, each continued on its own. Special tokens in a text are special tokens here."
  }),
  suffix: Schema.optionalKey(
    Schema.String.annotate({
      description:
        "Text after the continuation: the model fills in between. A model without tokens for that gets 400; prompts must then be texts."
    })
  ),
  echo: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Begin each text with its prompt. Not together with logprobs.", default: false })
  ),
  n: Schema.optionalKey(count(1).annotate({ description: "Continuations of each prompt, at most as many as --slots.", default: 1 })),
  best_of: Schema.optionalKey(
    count(1).annotate({
      description: "Continuations to generate, of which the n of the highest mean log probability per token are given. Only unstreamed.",
      default: 1
    })
  ),
  logprobs: Schema.optionalKey(
    topLogprobs.annotate({
      description:
        "Give log probabilities of the new tokens, and of this many of the likeliest in their place. Where a format holds the output, they are those among the tokens that may come."
    })
  ),
  ...streamFields,
  ...samplingFields,
  ...tokenFields,
  ...responseFormatField,
  ...formatFields,
  add_special_tokens: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "false: a text begins without the BOS token that the model wants.", default: true })
  ),
  ...inertFields
}).annotate({ identifier: "CompletionRequest" })
export type CompletionRequest = typeof CompletionRequest.Type

export const CompletionLogprobs = Schema.Struct({
  tokens: Schema.Array(Schema.String).annotate({
    description: "Texts of the new tokens; bytes that are no whole character are written bytes:\\xNN."
  }),
  token_logprobs: Schema.Array(Schema.Finite).annotate({ description: "Their log probabilities before temperature and penalties." }),
  top_logprobs: Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Schema.Finite))).annotate({
    description: "For each, the likeliest tokens and itself; null where logprobs is 0."
  }),
  text_offset: Schema.Array(Schema.Int).annotate({ description: "Where each begins in the choice's text, in Unicode characters." })
}).annotate({ identifier: "CompletionLogprobs" })
export type CompletionLogprobs = typeof CompletionLogprobs.Type

/** A whole answer, or one event of a streamed one. */
export const Completion = Schema.Struct({
  id: Schema.String.annotate({ description: "cmpl-..." }),
  object: Schema.Literal("text_completion"),
  created: Schema.Int.annotate({ description: "Unix time." }),
  model: Schema.String.annotate({ description: "Model id." }),
  choices: Schema.Array(Schema.Struct({
    index: Schema.Int.annotate({ description: "From 0: the n choices of the first prompt, then those of the next." }),
    text: Schema.String.annotate({ description: "The continuation (in a stream: new text)." }),
    logprobs: Schema.NullOr(CompletionLogprobs),
    finish_reason: Schema.NullOr(Schema.Literals(["stop", "length"])).annotate({
      description: "stop or length; null until the last chunk."
    }),
    stop_reason: Schema.optionalKey(stopReason.annotate({ description: "The stop string or the one of stop_token_ids that ended it." })),
    token_ids: Schema.optionalKey(tokenIds.annotate({ description: "With return_token_ids: the new tokens." })),
    prompt_token_ids: Schema.optionalKey(tokenIds.annotate({ description: "With return_token_ids: the prompt's tokens." }))
  })),
  usage: Schema.optionalKey(Usage),
  timings: Schema.optionalKey(Timings),
  system_fingerprint: Schema.optionalKey(Schema.String.annotate({ description: "seed-... and the seed of the first choice." }))
}).annotate({
  identifier: "Completion",
  description:
    "Whole answer, or one data: line of a stream. The stream ends with data: [DONE]; with stream_options.include_usage the chunk before has empty choices and usage, and with continuous_usage_stats too, every chunk has usage."
})
export type Completion = typeof Completion.Type
