import { Clock, Context, Effect, Layer } from "effect"
import type { Conversation } from "../domain/Conversation.ts"
import { TemplateError } from "../domain/Errors.ts"
import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"
import { ChatRenderer, refusal, type TemplateSource } from "./ChatRenderer.ts"
import { type ReasoningFormat, startsInReasoning } from "./Reasoning.ts"

export type { TemplateSource } from "./ChatRenderer.ts"

const asTemplateError = (cause: unknown): TemplateError => new TemplateError({ message: refusal(cause) })

/** The model's own chat template. */
export class ChatTemplate extends Context.Service<ChatTemplate, {
  /** Text up to and including the generation prompt; everything that came with messages, tools and variables is marked untrusted. */
  readonly render: (conversation: Conversation) => Effect.Effect<RenderedPrompt, TemplateError>
  /** True when the rendered prompt leaves a reasoning block open (the model starts inside `<think>`). */
  readonly startsInReasoning: (prompt: RenderedPrompt) => boolean
  /** How the template marks reasoning; absent: as most do. */
  readonly reasoning?: ReasoningFormat
}>()("mashbox/prompt/ChatTemplate") {
  /** Parses and probes the template. Fails when there is none for this model or when it cannot be parsed. */
  static readonly make = (source: TemplateSource): Effect.Effect<ChatTemplate["Service"], TemplateError> =>
    Effect.map(Effect.try({ try: () => new ChatRenderer(source), catch: asTemplateError }), (renderer) =>
      ChatTemplate.of({
        render: Effect.fn("ChatTemplate.render")(function*(conversation) {
          const now = yield* Clock.currentTimeMillis
          return yield* Effect.try({ try: () => renderer.render(conversation, now), catch: asTemplateError })
        }),
        startsInReasoning,
        reasoning: renderer.reasoning
      }))

  /** For a model that can only complete text: every chat is refused with this error. */
  static readonly refusing = (error: TemplateError): ChatTemplate["Service"] =>
    ChatTemplate.of({ render: () => Effect.fail(error), startsInReasoning })

  static readonly layer = (source: TemplateSource): Layer.Layer<ChatTemplate, TemplateError> =>
    Layer.effect(ChatTemplate, ChatTemplate.make(source))
}
