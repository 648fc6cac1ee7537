import { noReasoning, type ReasoningState, type ReasoningTags, usualReasoning } from "../prompt/Reasoning.ts"

const isLineBreak = (unit: string): boolean => unit === "\n" || unit === "\r"

const withoutLeadingBreaks = (text: string): string => {
  let start = 0
  while (start < text.length && isLineBreak(text.charAt(start))) start++
  return text.slice(start)
}

const withoutTrailingBreaks = (text: string): string => {
  let end = text.length
  while (end > 0 && isLineBreak(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

/** Length of the longest suffix of `text` that is a proper prefix of `tag`. */
const partialTagLength = (text: string, tag: string): number => {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (tag.startsWith(text.slice(text.length - length))) return length
  }
  return 0
}

/**
 * Splits output into reasoning and text as it streams in. Reasoning is what stands between a pair of tags at the very start of the output,
 * without the line breaks at its ends; those after the closing tag are dropped, also where the prompt has that. Reasoning that is blank is none.
 * Later tags are text.
 */
export class ReasoningSplitter {
  private state: "start" | "reasoning" | "gap" | "text"
  private closing = ""
  private readonly tags: ReadonlyArray<ReasoningTags>
  /** What may be the beginning of a tag. */
  private held = ""
  /** White space before it that may be dropped. */
  private space = ""
  private emittedReasoning = false
  private readonly onText: (text: string) => void
  private readonly onReasoning: (text: string) => void

  constructor(
    onText: (text: string) => void,
    onReasoning: (text: string) => void,
    state: ReasoningState = noReasoning,
    tags = usualReasoning.tags
  ) {
    this.state = state._tag === "Open" ? "reasoning" : state._tag === "Closed" ? "gap" : "start"
    if (state._tag === "Open") this.closing = state.closing
    this.tags = tags
    this.onText = onText
    this.onReasoning = onReasoning
  }

  /** Between a pair of tags. */
  get inReasoning(): boolean {
    return this.state === "reasoning"
  }

  push(piece: string): void {
    if (piece === "") return
    if (this.state === "text") return this.onText(piece)
    this.held += piece
    if (this.state === "start") this.open()
    if (this.state === "reasoning") this.reason()
    if (this.state === "gap") this.skipGap()
  }

  /** Hands out what was held back. */
  end(): void {
    const rest = this.held
    this.held = ""
    if (this.state === "reasoning") this.addReasoning(rest)
    else if (this.state === "start" && this.space + rest !== "") this.onText(this.space + rest)
    this.state = "text"
  }

  private open(): void {
    const body = this.held.trimStart()
    this.space += this.held.slice(0, this.held.length - body.length)
    this.held = body
    if (body === "") return
    for (const [opening, closing] of this.tags) {
      if (body.startsWith(opening)) {
        this.closing = closing
        this.held = body.slice(opening.length)
        this.space = ""
        this.state = "reasoning"
        return
      }
      if (opening.startsWith(body)) return
    }
    this.releaseText(this.space + body)
  }

  private reason(): void {
    const end = this.held.indexOf(this.closing)
    const ready = end >= 0 ? end : this.held.length - partialTagLength(this.held, this.closing)
    this.addReasoning(this.held.slice(0, ready))
    this.held = this.held.slice(end >= 0 ? end + this.closing.length : ready)
    if (end >= 0) this.state = "gap"
  }

  private skipGap(): void {
    const body = withoutLeadingBreaks(this.held)
    this.held = ""
    if (body !== "") this.releaseText(body)
  }

  private releaseText(text: string): void {
    this.held = ""
    this.state = "text"
    this.onText(text)
  }

  private addReasoning(text: string): void {
    const body = this.emittedReasoning ? withoutTrailingBreaks(text) : text.trim()
    if (body === "") {
      this.space += text
      return
    }
    const all = this.emittedReasoning ? this.space + text : withoutLeadingBreaks(this.space + text)
    const own = withoutTrailingBreaks(all)
    this.space = all.slice(own.length)
    this.emittedReasoning = true
    this.onReasoning(own)
  }
}
