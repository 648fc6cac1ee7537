/** A function the model may call. `parameters` is a JSON Schema. */
export interface Tool {
  readonly name: string
  readonly description?: string
  readonly parameters?: unknown
  /** Its arguments satisfy the schema, or the request is refused. */
  readonly strict?: boolean
  /** Where its parameters stand in the request, for errors. */
  readonly field?: string
}
