import type { Result } from "effect"
import { GrammarBuilder } from "./GrammarBuilder.ts"
import { attempt, type GrammarError } from "./GrammarError.ts"
import type * as Ir from "./Ir.ts"
import type { Whitespace } from "./JsonText.ts"
import { SchemaGrammar } from "./schema/SchemaGrammar.ts"
import type { ArgumentsLayout, ValueLayout } from "./ValueLayout.ts"

export interface JsonSchemaOptions {
  /** Default `spaced`, as most models write JSON. */
  readonly whitespace?: Whitespace
  /** How values are written, where not as JSON. */
  readonly layout?: ValueLayout
  /** Of properties. `schema` (default): as the schema lists them, unnamed ones last. `free`: any. */
  readonly order?: "schema" | "free"
  /** Objects whose schema names properties and says nothing of others have no others. Every output still satisfies the schema. */
  readonly closed?: boolean
  /** Strings, numbers and listed values are marked as content; names of properties and what stands around them is not. */
  readonly marksContent?: boolean
}

/**
 * A JSON Schema (2020-12, with the spellings of draft 4 to 7 and OpenAPI's `nullable`) as a grammar of JSON texts in one canonical spelling. Each
 * keyword is enforced exactly, or the error names it. Keywords that no draft knows are annotations, as the specification says. Names of properties that
 * the schema does not list may repeat in an object, as JSON allows; each value then satisfies the schema.
 */
export const compile = (schema: unknown, options: JsonSchemaOptions = {}): Result.Result<Ir.Grammar, GrammarError> =>
  attempt(() => {
    const builder = new GrammarBuilder()
    return builder.finish(compileInto(builder, schema, options), "schema")
  })

/**
 * The same as a node of a larger grammar, with its rules in `builder`.
 *
 * @throws GrammarError
 */
export const compileInto = (builder: GrammarBuilder, schema: unknown, options: JsonSchemaOptions = {}): Ir.Node =>
  new SchemaGrammar(schema, builder, options).compile()

/**
 * A schema of an object whose properties are written one by one, as the arguments of a call are in some syntaxes.
 *
 * @throws GrammarError
 */
export const compileArgumentsInto = (
  builder: GrammarBuilder,
  schema: unknown,
  layout: ArgumentsLayout,
  options: JsonSchemaOptions = {}
): Ir.Node => new SchemaGrammar(schema, builder, options).compileArguments(layout)
