import type { GenerationError, RequestRefused } from "../domain/Errors.ts"

/** An error as one dialect puts it on the wire. */
export interface WireError {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
}

/** How one dialect words what goes wrong. */
export interface ErrorDialect {
  /** `requestId` is the one of the `x-request-id` header. */
  readonly encode: (error: GenerationError | RequestRefused, requestId: string) => WireError
}
