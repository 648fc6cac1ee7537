import type { Conversation } from "./Conversation.ts"
import type { Sampling } from "./Sampling.ts"

/** What the model continues: a conversation through its chat template, a text, or token ids. */
export type Prompt =
  | { readonly _tag: "Chat"; readonly conversation: Conversation }
  | TextPrompt
  | { readonly _tag: "Tokens"; readonly tokens: ReadonlyArray<number> }

export interface TextPrompt {
  readonly _tag: "Text"
  readonly text: string
  /** The texts of special tokens stand for them; by default they stay text. */
  readonly parseSpecial?: boolean
  /** False: without the BOS that the vocabulary wants in front. */
  readonly addBos?: boolean
  /** What follows the text: the model fills in between, where it knows how. */
  readonly suffix?: string
}

/** What a request says about single tokens. */
export interface TokenOptions {
  /** Log probabilities of the output's tokens, with this many alternatives each (≤ `mostTopLogprobs`); absent: none. */
  readonly topLogprobs?: number
  /** Stop tokens are not drawn and stop strings not seen before this many tokens. */
  readonly minTokens?: number
  /** Tokens that end a turn do not end the output. */
  readonly ignoreEnd?: boolean
  /** Tokens that end the output beside those that end a turn. */
  readonly stopTokens?: ReadonlyArray<number>
  /** A stop string that ends the output stays in it. */
  readonly includeStop?: boolean
  /** Control tokens show as their text. */
  readonly showSpecial?: boolean
  /** Give every token id with the finish. */
  readonly returnTokens?: boolean
}

/** One request for output, in no dialect. */
export interface GenerationRequest {
  /** As the client named it; undefined means the model that is served. */
  readonly model: string | undefined
  readonly prompt: Prompt
  readonly sampling: Sampling
  /** Answers to the one prompt, with the seeds seed, seed + 1, …; 1 when absent. */
  readonly choices?: number
  /** False: the output ends with its first tool call. True when absent. */
  readonly parallelToolCalls?: boolean
  /** undefined: up to the end of the context. */
  readonly maxTokens: number | undefined
  /** Tokens of reasoning after which its end is forced; undefined: what the effort in the template's variables stands for. */
  readonly reasoningBudget?: number
  readonly stopStrings: ReadonlyArray<string>
  readonly tokenOptions?: TokenOptions
  readonly tenant: string
  /** Requests of one tenant take turns by session; undefined shares one. */
  readonly session: string | undefined
}
