/** A function the model may call. `parameters` is a JSON Schema. */
export interface Tool {
  readonly name: string
  readonly description?: string
  readonly parameters?: unknown
  /** Its arguments satisfy the schema, or the request is refused. */
  readonly strict?: boolean
  /** What its one parameter `input` has to be. */
  readonly inputGrammar?: { readonly syntax: string; readonly definition: string }
  /** Where the schema or the grammar stands in the request, for errors. */
  readonly field?: string
}

/** Which calls the output has to have. */
export interface ToolChoice {
  /** The output is calls; else it may hold some. */
  readonly required: boolean
  /** The only tools that may be called; absent: all. */
  readonly names?: ReadonlyArray<string>
  /** There is one call and no other. */
  readonly once?: boolean
  /** Where it stands in the request, for errors. */
  readonly field: string
}
