/** What the text of an answer has to be. `field` is where the request says so, for errors. */
export type OutputFormat =
  | { readonly _tag: "JsonObject"; readonly field: string }
  | { readonly _tag: "JsonSchema"; readonly schema: unknown; readonly field: string }
  | { readonly _tag: "Regex"; readonly pattern: string; readonly field: string }
  | { readonly _tag: "Choice"; readonly choices: ReadonlyArray<string>; readonly field: string }
  | { readonly _tag: "Grammar"; readonly syntax: "gbnf" | "lark"; readonly text: string; readonly field: string }
  | {
    readonly _tag: "Tags"
    /** Free text in which each of these begins a tag. */
    readonly triggers: ReadonlyArray<string>
    readonly tags: ReadonlyArray<StructuralTag>
    readonly field: string
  }

/** A JSON value between two texts. */
export interface StructuralTag {
  readonly begin: string
  readonly schema: unknown
  readonly end: string
  /** Where its schema stands, for errors. */
  readonly field: string
}
