import { Data, Result } from "effect"

export type Reason = "Invalid" | "Unsupported" | "Unsatisfiable" | "TooLarge"

/**
 * A schema, pattern or grammar text that cannot be enforced. `message` is one line for a person and begins with `path` or the position. Made without
 * a schema of its own: the thread that compiles grammars would load all of `Schema` for it.
 */
export class GrammarError extends Data.TaggedError("GrammarError")<{
  readonly reason: Reason
  readonly message: string
  /** Where in the JSON value, dotted: "properties.age.minimum"; "" is the whole value. */
  readonly path: string
  /** In a grammar's or pattern's text, both from 1. */
  readonly line?: number
  readonly column?: number
}> {}

/** What `compile` throws of this folder's own errors becomes a value; anything else is a defect and passes. */
export const attempt = <A>(compile: () => A): Result.Result<A, GrammarError> => {
  try {
    return Result.succeed(compile())
  } catch (error) {
    if (error instanceof GrammarError) return Result.fail(error)
    throw error
  }
}
