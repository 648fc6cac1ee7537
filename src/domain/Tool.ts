/** A function the model may call. `parameters` is a JSON Schema. */
export interface Tool {
  readonly name: string
  readonly description?: string
  readonly parameters?: unknown
}
