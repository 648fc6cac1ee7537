import type { Tool } from "./Tool.ts"

/** A message as the chat template sees it. `content` is text; parts of other kinds never get this far. */
export type Message =
  | { readonly role: "system" | "developer" | "user"; readonly content: string; readonly name?: string }
  | {
    readonly role: "assistant"
    readonly content: string | null
    readonly reasoning?: string
    readonly toolCalls?: ReadonlyArray<{ readonly id: string; readonly name: string; /** JSON text */ readonly arguments: string }>
  }
  | { readonly role: "tool"; readonly toolCallId: string; readonly name?: string; readonly content: string }

export interface Conversation {
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<Tool>
  /** Variables for the chat template, for example `enable_thinking`. */
  readonly templateVariables: Readonly<Record<string, unknown>>
}
