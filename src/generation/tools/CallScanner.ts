import { CodeFence } from "./CodeFence.ts"
import type { ToolCallParser, ToolCallSink } from "./ToolCallParser.ts"

/** What a reader makes of a character: it took it, it took it and its calls are over, or it did not take it, since no call goes on so. */
export type Verdict = "more" | "done" | "bad"

/** Reads what follows an opener, a character at a time, and reports the calls in it to a {@link CallOutput}. */
export interface CallReader {
  readonly step: (unit: string) => Verdict
  /** Of readers whose calls stand or fall together: whether they stand if nothing more comes. */
  readonly stands?: boolean
}

/** Where readers report a call. */
export interface CallOutput {
  /** A call has begun and is not finished. */
  readonly open: boolean
  /** A piece of the arguments as JSON text. What comes before the call begins is kept for it. */
  readonly argument: (json: string) => void
  readonly begin: (name: string, id?: string) => void
  readonly finish: (whole: boolean) => void
  /** What was taken so far belongs to the calls before it, and is no text whatever follows. */
  readonly settle: () => void
}

/** Makes the reader of what follows an opener. */
export type ReaderMaker = (output: CallOutput) => CallReader

export interface ScannerOptions {
  /** No opener has its first character twice, and none begins another. */
  readonly openers: ReadonlyMap<string, ReaderMaker>
  /** Reads the output from its start, before any opener. */
  readonly first?: ReaderMaker
  /** Ends the arguments of a call that went wrong after it had begun; so does an opener. */
  readonly closer?: string
}

/**
 * What all syntaxes with markers share: text up to an opener, outside of fenced code blocks, then whatever the opener's reader takes. What a
 * reader took and then gave up is text again. Arguments that go wrong once the call has begun are handed on as they are, up to the closer.
 */
export class CallScanner implements ToolCallParser, CallOutput {
  readonly #sink: ToolCallSink
  readonly #openers: ReadonlyMap<string, ReaderMaker>
  readonly #tags: ReadonlyArray<string>
  readonly #fence = new CodeFence()
  #reader: CallReader | undefined
  #broken = false
  /** Read, and neither text nor part of a call yet. */
  #held = ""
  /** `#held` from here on is the beginning of a tag. */
  #tag = ""
  #text = ""
  #arguments = ""
  /** How often calls began, finished or were settled. */
  #changes = 0
  /** Calls were reported that stand only if what follows them allows it. */
  #tentative = false
  open = false
  work = 0

  constructor(sink: ToolCallSink, { closer, first, openers }: ScannerOptions) {
    this.#sink = sink
    this.#openers = openers
    this.#tags = [...openers.keys(), ...(closer === undefined ? [] : [closer])]
    this.#reader = first?.(this)
  }

  push(piece: string): void {
    if (this.#reader === undefined && this.#tag === "" && !this.#mayOpen(piece)) this.#addText(piece)
    else for (let i = 0; i < piece.length; i++) this.#step(piece.charAt(i))
    this.#flush()
  }

  end(): void {
    if (this.#broken) {
      this.argument(this.#tag)
      this.#takeSource(this.#tag)
      this.#tag = ""
    }
    if (this.open) this.finish(false)
    this.#judge(this.#reader?.stands === true)
    this.#addText(this.#held + this.#tag)
    this.#held = ""
    this.#tag = ""
    this.#reader = undefined
    this.#broken = false
    this.#flush()
  }

  argument(json: string): void {
    this.#arguments += json
  }

  begin(name: string, id?: string): void {
    this.#flushText()
    this.#changes++
    this.open = true
    this.#takeSource(this.#held)
    this.#held = ""
    this.#sink.start(name, id)
  }

  finish(whole: boolean): void {
    this.#flushArguments()
    this.#changes++
    this.open = false
    this.#tentative = this.#reader?.stands !== undefined
    this.#sink.end(whole, this.#tentative)
  }

  settle(): void {
    this.#changes++
    this.#takeSource(this.#held)
    this.#held = ""
  }

  #mayOpen(piece: string): boolean {
    for (const opener of this.#openers.keys()) if (piece.includes(opener.charAt(0))) return true
    return false
  }

  #step(unit: string): void {
    this.work++
    if (this.#broken) return this.#stepBroken(unit)
    if (this.#reader === undefined) return this.#stepText(unit)
    const before = this.#changes
    const wasOpen = this.open
    const verdict = this.#reader.step(unit)
    if (verdict === "bad") return this.#giveUp(unit)
    if (wasOpen || before !== this.#changes) this.#takeSource(unit)
    else this.#held += unit
    if (verdict === "more") return
    this.#takeSource(this.#held)
    this.#held = ""
    this.#judge(true)
    this.#reader = undefined
  }

  #judge(stands: boolean): void {
    if (this.#tentative) this.#sink.settle?.(stands)
    this.#tentative = false
  }

  #stepText(unit: string): void {
    this.work++
    if (this.#tag !== "") {
      const tag = this.#tag + unit
      const found = this.#openerOf(tag)
      if (found !== undefined) {
        this.#tag = found === tag ? "" : tag
        if (found === tag) this.#read(tag)
        return
      }
      this.#addText(this.#tag)
      this.#tag = ""
    }
    if (!this.#fence.open && this.#openerOf(unit) !== undefined) this.#tag = unit
    else this.#addText(unit)
  }

  #openerOf(tag: string): string | undefined {
    for (const opener of this.#openers.keys()) if (opener.startsWith(tag)) return opener
    return undefined
  }

  #read(opener: string): void {
    this.#held = opener
    this.#reader = this.#openers.get(opener)?.(this)
  }

  /** What is left of the arguments of a call that went wrong: everything up to its closer. */
  #stepBroken(unit: string): void {
    this.work++
    const tag = this.#tag + unit
    const found = this.#tags.find((text) => text.startsWith(tag))
    if (found === undefined) {
      this.argument(this.#tag)
      this.#takeSource(this.#tag)
      this.#tag = ""
      if (tag !== unit) return this.#stepBroken(unit)
      this.argument(unit)
      this.#takeSource(unit)
      return
    }
    this.#tag = tag
    if (found !== tag) return
    this.#tag = ""
    this.#broken = false
    this.finish(false)
    this.#judge(false)
    this.#reader = undefined
    if (this.#openers.has(tag)) this.#read(tag)
    else this.#takeSource(tag)
  }

  /** The reader cannot go on. */
  #giveUp(unit: string): void {
    if (this.open) {
      this.#broken = true
      return this.#stepBroken(unit)
    }
    this.#judge(false)
    this.#reader = undefined
    this.#arguments = ""
    const held = this.#held
    this.work += held.length
    this.#held = ""
    const tag = this.#openerAtEnd(held)
    this.#addText(held.slice(0, held.length - tag.length))
    if (this.#fence.open) this.#addText(tag)
    else this.#tag = tag
    this.#stepText(unit)
  }

  /** The proper beginning of an opener that a text ends with. */
  #openerAtEnd(text: string): string {
    for (const opener of this.#openers.keys()) {
      const start = text.lastIndexOf(opener.charAt(0))
      const tag = start < 0 || text.length - start >= opener.length ? "" : text.slice(start)
      if (tag !== "" && opener.startsWith(tag)) return tag
    }
    return ""
  }

  #addText(text: string): void {
    this.#text += text
    this.#fence.push(text)
  }

  #takeSource(text: string): void {
    if (text === "" || this.#sink.source === undefined) return
    this.#flushText()
    this.#sink.source(text)
  }

  #flush(): void {
    this.#flushText()
    if (this.open) this.#flushArguments()
  }

  #flushText(): void {
    if (this.#text === "") return
    const text = this.#text
    this.#text = ""
    this.#sink.text(text)
  }

  #flushArguments(): void {
    if (this.#arguments === "") return
    const text = this.#arguments
    this.#arguments = ""
    this.#sink.argument(text)
  }
}
