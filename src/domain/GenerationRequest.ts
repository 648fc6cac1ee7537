import type { Conversation } from "./Conversation.ts"
import type { Sampling } from "./Sampling.ts"

/** What the model continues: a conversation through its chat template, a text (special tokens in it stay text), or token ids. */
export type Prompt =
  | { readonly _tag: "Chat"; readonly conversation: Conversation }
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Tokens"; readonly tokens: ReadonlyArray<number> }

/** One request for output, in no dialect. */
export interface GenerationRequest {
  /** As the client named it; undefined means the model that is served. */
  readonly model: string | undefined
  readonly prompt: Prompt
  readonly sampling: Sampling
  /** undefined: up to the end of the context. */
  readonly maxTokens: number | undefined
  readonly stopStrings: ReadonlyArray<string>
  readonly tenant: string
  /** Requests of one tenant take turns by session; undefined shares one. */
  readonly session: string | undefined
}
