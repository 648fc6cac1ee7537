import { Context, type Effect } from "effect"

/**
 * Rendered prompt text with the places that came from users. `untrusted` are half-open ranges of UTF-16 offsets, ascending and disjoint:
 * special tokens are matched only where every character is outside of them.
 */
export interface RenderedPrompt {
  readonly text: string
  readonly untrusted: ReadonlyArray<readonly [start: number, end: number]>
  /** False: without the BOS that the vocabulary wants in front. */
  readonly addBos?: boolean
}

/** Text ⇄ token ids of one model. */
export class Tokenizer extends Context.Service<Tokenizer, {
  /** Ids of a prompt. BOS is put first where the vocabulary wants one and the text does not begin with it. A long text is encoded in short turns of the event loop. */
  readonly encode: (prompt: RenderedPrompt) => Effect.Effect<Int32Array>
  /**
   * A streaming decoder of output that continues a prompt: control tokens are silent or show as their text, all of them or those with one of
   * these texts; text comes out in whole characters.
   */
  readonly decoder: (shown?: boolean | ReadonlySet<string>) => StreamDecoder
  /** Bytes that a token stands for, the same array every time: control tokens for their own text, byte tokens for their byte; none for an unknown id. */
  readonly tokenBytes: (token: number) => Uint8Array
  /** Tokens that end a turn (native.md's end-of-generation set). */
  readonly endTokens: Int32Array
  readonly bos: string | undefined
  readonly eos: string | undefined
  /** Texts of all control and user-defined tokens that are not whitespace. */
  readonly specialTexts: ReadonlyArray<string>
  readonly tokenId: (text: string) => number | undefined
  readonly size: number
}>()("mashbox/tokenizer/Tokenizer") {}

export interface StreamDecoder {
  /** Text that this token completes; "" while a character is incomplete. */
  push(token: number): string
  /** What was held back, with U+FFFD for an incomplete character. */
  end(): string
}
