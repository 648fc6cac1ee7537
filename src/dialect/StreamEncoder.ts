import type { GenerationError, RequestRefused } from "../domain/Errors.ts"
import type { OutputEvent } from "../domain/OutputEvent.ts"

/** The server-sent events of one streamed answer, as one dialect words them. Every result is whole frames, or "". */
export interface StreamEncoder {
  /** What comes before any output. */
  readonly start: () => string
  /** One delta; for `Finish` everything up to the end of the stream. */
  readonly event: (event: OutputEvent) => string
  /** Forgets every event so far: none of them was sent, and the generation begins again. Absent where events leave no state. */
  readonly reset?: () => void
  /** The event that ends a stream that failed. */
  readonly error: (error: GenerationError | RequestRefused) => string
  /** Something without meaning that shows that the server lives. */
  readonly keepAlive: () => string
}
