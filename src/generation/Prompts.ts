import { Effect } from "effect"
import type { Conversation } from "../domain/Conversation.ts"
import { type TemplateError, UnsupportedFeature } from "../domain/Errors.ts"
import type { Prompt, TextPrompt } from "../domain/GenerationRequest.ts"
import type { ChatTemplate } from "../prompt/ChatTemplate.ts"
import { infill } from "../prompt/Infill.ts"
import { noReasoning, type ReasoningState, reasoningState } from "../prompt/Reasoning.ts"
import { inSpan } from "../telemetry/Spans.ts"
import type { RenderedPrompt, Tokenizer } from "../tokenizer/Tokenizer.ts"

export interface EncodedPrompt {
  readonly tokens: Int32Array
  readonly reasoning: ReasoningState
}

/** What becomes of prompts before a model sees them. Asks nothing of the engine. */
export interface Prompts {
  readonly encode: (prompt: Prompt) => Effect.Effect<EncodedPrompt, TemplateError | UnsupportedFeature>
  /** The text that the chat template makes of a conversation. */
  readonly render: (conversation: Conversation) => Effect.Effect<string, TemplateError>
  /** Text of tokens, control tokens as their own text. */
  readonly textOf: (tokens: Iterable<number>) => string
  readonly bytesOf: (token: number) => Uint8Array
  readonly vocabularySize: number
  readonly bos: string | undefined
  readonly eos: string | undefined
}

const textPrompt = (prompt: TextPrompt, specialTexts: ReadonlyArray<string>): RenderedPrompt | undefined => {
  const rendered = prompt.suffix === undefined
    ? { text: prompt.text, untrusted: prompt.parseSpecial === true ? [] : [[0, prompt.text.length] as const] }
    : infill(specialTexts, prompt.text, prompt.suffix)
  return rendered === undefined || prompt.addBos === undefined ? rendered : { ...rendered, addBos: prompt.addBos }
}

export const make = (template: ChatTemplate["Service"], tokenizer: Tokenizer["Service"]): Prompts => ({
  encode: Effect.fnUntraced(function*(prompt: Prompt) {
    switch (prompt._tag) {
      case "Chat": {
        const rendered = yield* inSpan("render")(template.render(prompt.conversation))
        return { tokens: yield* inSpan("tokenize")(tokenizer.encode(rendered)), reasoning: reasoningState(rendered, template.reasoning) }
      }
      case "Text": {
        const rendered = textPrompt(prompt, tokenizer.specialTexts)
        if (rendered === undefined) {
          return yield* new UnsupportedFeature({
            message: "suffix: this model has no tokens for filling in between two texts",
            field: "suffix"
          })
        }
        return { tokens: yield* inSpan("tokenize")(tokenizer.encode(rendered)), reasoning: noReasoning }
      }
      case "Tokens":
        return { tokens: Int32Array.from(prompt.tokens), reasoning: noReasoning }
    }
  }),
  render: (conversation) => Effect.map(template.render(conversation), ({ text }) => text),
  textOf: (tokens) => {
    const decoder = tokenizer.decoder(true)
    let text = ""
    for (const token of tokens) text += decoder.push(token)
    return text + decoder.end()
  },
  bytesOf: tokenizer.tokenBytes,
  vocabularySize: tokenizer.size,
  bos: tokenizer.bos,
  eos: tokenizer.eos
})
