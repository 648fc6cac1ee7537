import { Schema } from "effect"

const maxInt32 = 2 ** 31 - 1

/** An integer that fits in 32 bits, with a lower bound. */
export const count = (minimum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum: maxInt32 })).annotate({
    expected: `an integer from ${minimum} to ${maxInt32}`
  })

/** A finite number in a closed range. */
export const between = (minimum: number, maximum: number) =>
  Schema.Finite.check(Schema.isBetween({ minimum, maximum })).annotate({ expected: `a number from ${minimum} to ${maximum}` })

const penalty = between(-2, 2)

const multiplicativePenalty = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 100, exclusiveMinimum: true })
).annotate({ expected: "a number above 0 and up to 100" })

const stop = Schema.String.check(Schema.isNonEmpty()).annotate({ expected: "a non-empty string" })

/** Fields of every OpenAI route that say how the next token is chosen and when to stop. A `null` counts as absent. */
export const samplingFields = {
  temperature: Schema.optionalKey(between(0, 4).annotate({ description: "0 = greedy (default). Up to 4.", default: 0 })),
  top_p: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1, exclusiveMinimum: true })).annotate({
      expected: "a number above 0 and up to 1",
      description: "Nucleus sampling, in (0, 1].",
      default: 1
    })
  ),
  top_k: Schema.optionalKey(count(0).annotate({ description: "Keep the k most likely tokens; 0 = off.", default: 0 })),
  min_p: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1, exclusiveMaximum: true })).annotate({
      expected: "a number from 0 and below 1",
      description: "Drop tokens below min_p times the top probability, in [0, 1).",
      default: 0
    })
  ),
  seed: Schema.optionalKey(Schema.Int.annotate({
    description: "Sampling seed: the same seed and prompt give the same tokens. A random one when absent or -1."
  })),
  stop: Schema.optionalKey(
    Schema.Union([stop, Schema.Array(stop).check(Schema.isMaxLength(64))]).annotate({
      expected: "a non-empty string or a list of at most 64 of them",
      description: "A string or a list of non-empty strings; the text ends before the first one."
    })
  ),
  stop_sequences: Schema.optionalKey(
    Schema.Array(stop).check(Schema.isMaxLength(64)).annotate({
      expected: "a list of at most 64 non-empty strings",
      description: "Same as stop (Anthropic's name), used when stop is absent."
    })
  ),
  repetition_penalty: Schema.optionalKey(multiplicativePenalty.annotate({ description: "> 0; 1 = off.", default: 1 })),
  rep_pen: Schema.optionalKey(multiplicativePenalty.annotate({ description: "Same as repetition_penalty, used when that is absent." })),
  rep_window: Schema.optionalKey(
    count(0).annotate({ description: "Last tokens, prompt and output together, that the penalties look at.", default: 256 })
  ),
  frequency_penalty: Schema.optionalKey(penalty.annotate({ description: "-2 to 2; 0 = off.", default: 0 })),
  presence_penalty: Schema.optionalKey(penalty.annotate({ description: "-2 to 2; 0 = off.", default: 0 })),
  logit_bias: Schema.optionalKey(
    Schema.Record(Schema.String, between(-100, 100)).annotate({
      description: "Token id (as a string) to a bias of -100 to 100 that is added to the token's logit."
    })
  ),
  max_completion_tokens: Schema.optionalKey(
    count(1).annotate({ description: "Most new tokens (>= 1). Default: up to the end of the context (--ctx)." })
  ),
  max_tokens: Schema.optionalKey(
    count(1).annotate({ description: "Same as max_completion_tokens, which wins when both are set." })
  ),
  max_output_tokens: Schema.optionalKey(
    count(1).annotate({ description: "Same as max_tokens, used when neither of the others is set." })
  )
}

const inert = (description = "Accepted and ignored.") => Schema.optionalKey(Schema.Unknown).annotateKey({ description })

/** Fields of every OpenAI route that clients send and that change nothing about the answer. */
export const inertFields = {
  merge: inert("Accepted and ignored: every request joins the running batch at the next step."),
  prompt_cache_key: inert("Tags the request's session in the server log, by a hash (as the X-Session-Id header does)."),
  store: inert(),
  user: inert(),
  metadata: inert(),
  service_tier: inert()
}

/** Fields of every OpenAI route about the stream. */
export const streamFields = {
  stream: Schema.optionalKey(Schema.Boolean.annotate({
    description:
      "Stream the answer as server-sent events (see the 200 text/event-stream response). A client that reads nothing from the stream for 30 s is disconnected and its answer stops.",
    default: false
  })),
  stream_options: Schema.optionalKey(
    Schema.Struct({
      include_usage: Schema.optionalKey(Schema.NullOr(Schema.Boolean).annotate({ description: "Send a last chunk with usage." })),
      continuous_usage_stats: Schema.optionalKey(
        Schema.NullOr(Schema.Boolean).annotate({
          description: "With include_usage: every chunk of a choice has usage too, with the new tokens of that choice so far."
        })
      )
    })
  )
}

/** How far a prompt is prefilled. */
export const PromptProgress = Schema.Struct({
  total: Schema.Int.annotate({ description: "Prompt tokens." }),
  processed: Schema.Int.annotate({ description: "Of them, those in the KV cache by now." }),
  time_ms: Schema.Int.annotate({ description: "Milliseconds since the run started." })
})

/** Server timings, the fields of llama-server's timings block. */
export const Timings = Schema.Struct({
  prompt_n: Schema.Int.annotate({ description: "Prompt tokens prefilled (not served from the prefix cache)." }),
  prompt_ms: Schema.Finite.annotate({ description: "Milliseconds from the start of the run to the first new token." }),
  prompt_per_second: Schema.NullOr(Schema.Finite).annotate({ description: "prompt_n per second of prompt_ms." }),
  predicted_n: Schema.Int.annotate({ description: "New tokens." }),
  predicted_ms: Schema.Finite.annotate({ description: "Milliseconds from the first to the last new token." }),
  predicted_per_second: Schema.NullOr(Schema.Finite).annotate({
    description: "Decode speed: new tokens after the first, per second of predicted_ms."
  }),
  cache_n: Schema.Int.annotate({ description: "Prompt tokens served from the prefix cache." }),
  queue_ms: Schema.Finite.annotate({ description: "Milliseconds the request waited before it ran." })
}).annotate({ identifier: "ChatTimings", description: "Server timings, the fields of llama-server's timings block." })
export type Timings = typeof Timings.Type

/** What the prefix cache did for a request. */
export const CacheTimings = Schema.Struct({
  agent_turn_cache_hit: Schema.Boolean.annotate({ description: "The restored prefix includes a generated agent turn." }),
  cached_prefix_tokens: Schema.Int.annotate({ description: "Prompt tokens restored from the prefix cache." }),
  prefilled_tokens: Schema.Int.annotate({ description: "Prompt tokens computed for this request." })
}).annotate({ description: "What the prefix cache did." })

export const Usage = Schema.Struct({
  prompt_tokens: Schema.Int.annotate({ description: "Prompt tokens." }),
  completion_tokens: Schema.Int.annotate({ description: "New tokens." }),
  total_tokens: Schema.Int.annotate({ description: "Sum." }),
  prompt_tokens_details: Schema.optionalKey(
    Schema.Struct({ cached_tokens: Schema.Int.annotate({ description: "Prompt tokens served from the prefix cache." }) })
  ),
  completion_tokens_details: Schema.optionalKey(
    Schema.Struct({ reasoning_tokens: Schema.Int.annotate({ description: "New tokens spent on reasoning, its tags included." }) })
  ),
  timings: Schema.optionalKey(CacheTimings)
}).annotate({ identifier: "ChatUsage" })
export type Usage = typeof Usage.Type

/** OpenAI's error shape. */
export const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String.annotate({ description: "What went wrong." }),
    type: Schema.String.annotate({
      description:
        "invalid_request_error, authentication_error, permission_error, not_found_error, rate_limit_error, unavailable or server_error."
    }),
    param: Schema.NullOr(Schema.String).annotate({ description: "Path of the field to blame, for example messages.0.content." }),
    code: Schema.NullOr(Schema.String).annotate({ description: "For example context_length_exceeded or model_not_found." }),
    request_id: Schema.optionalKey(Schema.String.annotate({ description: "In a stream's error event: the response id." }))
  })
}).annotate({ identifier: "Error", description: "OpenAI error shape (all routes except /v1/messages*)." })
export type ErrorBody = typeof ErrorBody.Type
