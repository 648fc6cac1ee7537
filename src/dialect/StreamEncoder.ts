import type { GenerationError, RequestRefused } from "../domain/Errors.ts"
import type { Finish, OutputEvent } from "../domain/OutputEvent.ts"
import type { PrefillProgress } from "../domain/Usage.ts"

/** The server-sent events of one streamed answer, as one dialect words them. Every result is whole frames, or "". Choices count from 0; without a number, it is the first. */
export interface StreamEncoder {
  /** What comes before any output. */
  readonly start: () => string
  /** One delta or the finish of one choice. Without `end` there is one choice, and its `Finish` is everything up to the end of the stream. */
  readonly event: (event: OutputEvent, choice?: number) => string
  /** What comes after the finish of every choice, given all of them. */
  readonly end?: (finishes: ReadonlyArray<Finish>) => string
  /** How far the prompt is prefilled, for clients that asked for it. */
  readonly progress?: (progress: PrefillProgress, choice?: number) => string
  /** Forgets every event so far: none of them was sent, and the generation begins again. Absent where events leave no state. */
  readonly reset?: () => void
  /** The event that ends a stream that failed. */
  readonly error: (error: GenerationError | RequestRefused) => string
  /** Something without meaning that shows that the server lives. */
  readonly keepAlive: () => string
}
