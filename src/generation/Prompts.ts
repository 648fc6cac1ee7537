import { Effect, Option } from "effect"
import type { Conversation } from "../domain/Conversation.ts"
import { type TemplateError, UnsupportedFeature } from "../domain/Errors.ts"
import type { Prompt, TextPrompt } from "../domain/GenerationRequest.ts"
import type { ChatTemplate } from "../prompt/ChatTemplate.ts"
import { isLonger } from "../prompt/ConversationLength.ts"
import { infill } from "../prompt/Infill.ts"
import { type EncodedPrompt, longPrompt, type LongPrompts } from "../prompt/LongPrompts.ts"
import { noReasoning, reasoningState } from "../prompt/Reasoning.ts"
import { renderText } from "../prompt/TextPrompts.ts"
import { inSpan } from "../telemetry/Spans.ts"
import { inTurns } from "../tokenizer/InTurns.ts"
import type { Paused } from "../tokenizer/Paused.ts"
import type { Tokenizer } from "../tokenizer/Tokenizer.ts"

/** What becomes of prompts before a model sees them. Asks nothing of the engine. */
export interface Prompts {
  readonly encode: (prompt: Prompt) => Effect.Effect<EncodedPrompt, TemplateError | UnsupportedFeature>
  /** The text that the chat template makes of a conversation. */
  readonly render: (conversation: Conversation) => Effect.Effect<string, TemplateError>
  /** Text of tokens, control tokens as their own text. */
  readonly textOf: (tokens: Int32Array) => Effect.Effect<string>
  readonly bytesOf: (token: number) => Uint8Array
  /** Index of the first token that the vocabulary lacks; −1 where it has all of them. */
  readonly firstUnknown: (tokens: Int32Array) => number
  readonly vocabularySize: number
  readonly bos: string | undefined
  readonly eos: string | undefined
}

const noInfill = new UnsupportedFeature({
  message: "suffix: this model has no tokens for filling in between two texts",
  field: "suffix"
})

const tokensPerStep = 4096

function* textOf(tokens: Int32Array, tokenizer: Tokenizer["Service"]): Paused<string> {
  const decoder = tokenizer.decoder(true)
  const pieces: Array<string> = []
  for (let at = 0; at < tokens.length; at += tokensPerStep) {
    // Joined, it is no tree of a million small texts, which would be walked at once when it is read.
    pieces.push(Array.from(tokens.subarray(at, at + tokensPerStep), (token) => decoder.push(token)).join(""))
    yield
  }
  return pieces.join("") + decoder.end()
}

const isLongText = ({ suffix = "", text }: TextPrompt) => text.length + suffix.length > longPrompt

/** `long`: where long prompts are encoded; without it all are in this thread. */
export const make = (
  template: ChatTemplate["Service"],
  tokenizer: Tokenizer["Service"],
  long: Option.Option<LongPrompts["Service"]> = Option.none()
): Prompts => {
  const longFor = (isLong: boolean) => isLong ? Option.getOrUndefined(long) : undefined
  return {
    encode: Effect.fnUntraced(function*(prompt: Prompt) {
      switch (prompt._tag) {
        case "Chat": {
          const thread = longFor(isLonger(prompt.conversation, longPrompt))
          if (thread !== undefined) return yield* inSpan("tokenize")(thread.encode(prompt))
          const rendered = yield* inSpan("render")(template.render(prompt.conversation))
          return { tokens: yield* inSpan("tokenize")(tokenizer.encode(rendered)), reasoning: reasoningState(rendered, template.reasoning) }
        }
        case "Text": {
          if (prompt.suffix !== undefined && infill(tokenizer.specialTexts, "", "") === undefined) return yield* noInfill
          const thread = longFor(isLongText(prompt))
          if (thread !== undefined) return yield* inSpan("tokenize")(thread.encode(prompt))
          const rendered = renderText(prompt, tokenizer.specialTexts)
          if (rendered === undefined) return yield* noInfill
          return { tokens: yield* inSpan("tokenize")(tokenizer.encode(rendered)), reasoning: noReasoning }
        }
        case "Tokens":
          return { tokens: prompt.tokens, reasoning: noReasoning }
      }
    }),
    render: Effect.fnUntraced(function*(conversation) {
      const thread = longFor(isLonger(conversation, longPrompt))
      return thread === undefined ? (yield* template.render(conversation)).text : yield* thread.render({ _tag: "Chat", conversation })
    }),
    textOf: (tokens) => inTurns(() => textOf(tokens, tokenizer)),
    bytesOf: tokenizer.tokenBytes,
    firstUnknown: (tokens) => {
      for (let index = 0; index < tokens.length; index++) if ((tokens[index] ?? 0) >= tokenizer.size) return index
      return -1
    },
    vocabularySize: tokenizer.size,
    bos: tokenizer.bos,
    eos: tokenizer.eos
  }
}
