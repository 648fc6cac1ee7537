import type { GenerationError, Overloaded, RequestRefused } from "../domain/Errors.ts"

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

/** What too many requests wait for, in a sentence. */
export const waitingMessage = ({ scope, waitingFor }: Overloaded): string =>
  `Too many ${scope === "tenant" ? "of your requests" : "requests"} are waiting for ${
    waitingFor === "grammar" ? "their schemas to be compiled" : "a slot"
  }.`

/** How one dialect words what goes wrong. */
export interface ErrorDialect {
  /** `requestId` is the one of the `x-request-id` header. */
  readonly encode: (error: GenerationError | RequestRefused, requestId: string) => WireError
}
