import { Context, type Effect } from "effect"
import type { Conversation } from "../domain/Conversation.ts"
import type { TemplateError } from "../domain/Errors.ts"
import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"

/** The model's own chat template. */
export class ChatTemplate extends Context.Service<ChatTemplate, {
  /** Text up to and including the generation prompt; special-token text inside messages and tools is marked untrusted. */
  readonly render: (conversation: Conversation) => Effect.Effect<RenderedPrompt, TemplateError>
  /** True when the rendered prompt leaves a reasoning block open (the model starts inside `<think>`). */
  readonly startsInReasoning: (prompt: RenderedPrompt) => boolean
}>()("mashbox/prompt/ChatTemplate") {}
