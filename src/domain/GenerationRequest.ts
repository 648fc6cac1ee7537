import type { Conversation } from "./Conversation.ts"
import type { Sampling } from "./Sampling.ts"

/** One request for output, in no dialect. */
export interface GenerationRequest {
  /** As the client named it; undefined means the model that is served. */
  readonly model: string | undefined
  readonly conversation: Conversation
  readonly sampling: Sampling
  /** undefined: up to the end of the context. */
  readonly maxTokens: number | undefined
  readonly stopStrings: ReadonlyArray<string>
  readonly tenant: string
}
