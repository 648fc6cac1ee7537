import type { GenerationError, RequestRefused } from "../domain/Errors.ts"

/** An error as one dialect puts it on the wire. */
export interface WireError {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
}

/** Beside Retry-After, which has whole seconds only: the SDKs of both vendors read it. */
export const preciseRetry = (error: GenerationError | RequestRefused): Readonly<Record<string, string>> =>
  error._tag === "Overloaded" && error.retryAfterMs !== undefined ? { "retry-after-ms": String(error.retryAfterMs) } : {}

/** How one dialect words what goes wrong. */
export interface ErrorDialect {
  /** `requestId` is the one of the `x-request-id` header. */
  readonly encode: (error: GenerationError | RequestRefused, requestId: string) => WireError
}
