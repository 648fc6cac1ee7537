import type { ScoredToken, TokenLogprobs } from "../domain/Logprobs.ts"
import type { EngineLogprobs } from "../engine/Logprobs.ts"

interface Step {
  readonly token: number
  readonly logprobs: EngineLogprobs
  /** Where its text stands in the decoded output; a token that only begins a character has none of its own. */
  readonly start: number
  readonly end: number
}

/**
 * Which tokens a piece of shown text came from. Output is decoded, then tags, calls and stop strings are taken out of it and some of it is held
 * back, so the trail keeps the decoded text that nothing has been shown of yet, and finds each shown piece at its end.
 */
export class TokenTrail {
  private readonly bytesOf: (token: number) => Uint8Array
  private steps: Array<Step> = []
  /** Decoded text from `offset` on. */
  private text = ""
  private offset = 0

  constructor(bytesOf: (token: number) => Uint8Array) {
    this.bytesOf = bytesOf
  }

  /** `text` is what the decoder made of the token. */
  push(token: number, logprobs: EngineLogprobs, text: string): void {
    const start = this.offset + this.text.length
    this.text += text
    this.steps.push({ token, logprobs, start, end: start + text.length })
  }

  /** Text that the decoder had held back at the end of the output. */
  pushRest(text: string): void {
    this.text += text
    const last = this.steps.pop()
    if (last !== undefined) this.steps.push({ ...last, end: this.offset + this.text.length })
  }

  /**
   * The tokens that begin in `shown`, which stands at the end of all text but the last `held` characters, or before something that was taken out
   * there. Hidden tokens before it are forgotten.
   */
  take(shown: string, held: number): ReadonlyArray<TokenLogprobs> {
    const within = this.text.length - held
    const start = this.text.lastIndexOf(shown, within - shown.length)
    if (start < 0) return []
    const from = this.offset + start
    const to = from + shown.length
    const visible = this.firstVisible(from)
    const after = this.steps.findIndex((step, index) => index >= visible && step.start >= to)
    const taken = this.steps.slice(visible, after < 0 ? undefined : after)
    this.steps = after < 0 ? [] : this.steps.slice(after)
    this.text = this.text.slice(start + shown.length)
    this.offset = to
    return taken.map((step) => this.scored(step))
  }

  /** The first step whose text reaches beyond `from`, or the first of those that begin its first character. */
  private firstVisible(from: number): number {
    let index = this.steps.findIndex((step) => step.end > from)
    if (index < 0) return this.steps.length
    for (let before = this.steps[index - 1]; before !== undefined && before.start === before.end; before = this.steps[index - 1]) index--
    return index
  }

  private scored({ logprobs, token }: Step): TokenLogprobs {
    const scored = (id: number, logprob: number): ScoredToken => ({ token: id, bytes: this.bytesOf(id), logprob })
    return { ...scored(token, logprobs.logprob), top: logprobs.top.map((candidate) => scored(candidate.token, candidate.logprob)) }
  }
}
