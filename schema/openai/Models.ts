import { Schema } from "effect"

/** A model, in a shape that OpenAI's and Anthropic's clients both read. */
export const Model = Schema.Struct({
  id: Schema.String.annotate({ description: "Model id." }),
  object: Schema.Literal("model"),
  type: Schema.Literal("model"),
  display_name: Schema.String.annotate({ description: "The id again (Anthropic's name for it)." }),
  owned_by: Schema.String.annotate({ description: "mashbox-labs" }),
  created: Schema.Int.annotate({ description: "Always 0." }),
  created_at: Schema.String.annotate({ description: "Always 1970-01-01T00:00:00Z." }),
  max_model_len: Schema.Int.annotate({ description: "Context length the server runs (--ctx)." }),
  weights: Schema.optionalKey(Schema.String.annotate({ description: "Weights file loaded." })),
  gb: Schema.optionalKey(Schema.Finite.annotate({ description: "Weights in memory, GB." })),
  bpw: Schema.optionalKey(Schema.Finite.annotate({ description: "Bits per weight of the weights file." })),
  prefix_cache: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether the server reuses cached prompt starts." })),
  slots: Schema.optionalKey(Schema.Int.annotate({ description: "Requests decoded together (--slots)." })),
  cache_ram_mib: Schema.optionalKey(Schema.Int.annotate({ description: "Host memory for saved prompt states (--cache-ram)." }))
}).annotate({ identifier: "Model" })
export type Model = typeof Model.Type

export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Model),
  has_more: Schema.Boolean,
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "ModelList" })
export type ModelList = typeof ModelList.Type
