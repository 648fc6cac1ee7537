import { Result, Schema } from "effect"

/** A schema, pattern or grammar text that cannot be enforced. `message` is one line for a person and begins with `path` or the position. */
export class GrammarError extends Schema.TaggedError<GrammarError>()("GrammarError", {
  reason: Schema.Literals(["Invalid", "Unsupported", "Unsatisfiable", "TooLarge"]),
  message: Schema.String,
  /** Where in the JSON value, dotted: "properties.age.minimum"; "" is the whole value. */
  path: Schema.String,
  /** In a grammar's or pattern's text, both from 1. */
  line: Schema.optionalKey(Schema.Int),
  column: Schema.optionalKey(Schema.Int)
}) {}

export type Reason = GrammarError["reason"]

/** What `compile` throws of this folder's own errors becomes a value; anything else is a defect and passes. */
export const attempt = <A>(compile: () => A): Result.Result<A, GrammarError> => {
  try {
    return Result.succeed(compile())
  } catch (error) {
    if (error instanceof GrammarError) return Result.fail(error)
    throw error
  }
}
