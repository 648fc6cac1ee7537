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
  /**
   * What the prompt ends with: the beginning of an answer (the default), the last message as the template closes it, or the last message left
   * open, an answer to go on with.
   */
  readonly ending?: "answer" | "message" | "open_message"
  /** Variables for the chat template, for example `enable_thinking`. */
  readonly templateVariables: Readonly<Record<string, unknown>>
}
