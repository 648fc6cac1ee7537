import { JsonObject } from "./JsonCall.ts"
import { isSpace } from "./JsonScanner.ts"
import type { ToolCallParser, ToolCallSink, ToolCallSyntax } from "./ToolCallParser.ts"

const start = "<|start|>"
const role = "<|start|>assistant"
const channel = "<|channel|>"
const message = "<|message|>"
const constrain = "<|constrain|>"
const ends = ["<|end|>", "<|call|>", "<|return|>"]

/** What may stand in a body beside its text. */
const bodyTags = [...ends, start, channel]

const header = /^(?: to=(\S+?))?(?:<\|channel\|>(\w+))?(?: to=(\S+?))?(?: (?:<\|constrain\|>)?\w*|<\|constrain\|>\w*)?<\|message\|>$/

/** What a header may begin with. */
const headerStarts = [channel, " to=", message]

/** Longer ones are no headers. */
const longestHeader = 512

/** Where the characters of a body go. "between": to nobody, since only white space is expected after a call. */
type Kind = "text" | "reasoning" | "arguments" | "between"

/**
 * Messages with headers: a channel says whether one is reasoning (analysis) or for the user, a recipient makes it a call. Several bodies of one
 * kind are joined by a line break. A call whose body is no JSON object, and a header that is none, are text as they were written.
 */
class HarmonyParser implements ToolCallParser {
  readonly #sink: ToolCallSink
  readonly #calls: boolean
  #place: "role" | "header" | "body" | "call" = "header"
  #kind: Kind = "text"
  /** Read, and not handed out: a header, and what came after it while it is not sure that it begins a call. */
  #held = ""
  /** The beginning of a tag in a body. */
  #tag = ""
  /** To be handed out, of the present kind. */
  #ready = ""
  #source = ""
  #name = ""
  #object = this.#newObject()
  #open = false
  /** A body has begun and nothing of it has come. */
  #fresh = false
  #anyText = false
  #anyReasoning = false
  /** White space of reasoning that has nothing else. */
  #blank = ""

  /** `calls`: whether a recipient makes a message a call. */
  work = 0

  constructor(sink: ToolCallSink, calls: boolean) {
    this.#sink = sink
    this.#calls = calls
  }

  get inReasoning(): boolean {
    return this.#kind === "reasoning" && this.#place === "body"
  }

  push(piece: string): void {
    if (this.#place === "body" && this.#kind !== "between" && this.#tag === "" && !piece.includes("<")) this.#add(piece)
    else for (let i = 0; i < piece.length; i++) this.#step(piece.charAt(i))
    this.#flush()
  }

  end(): void {
    if (this.#place === "call" && this.#object.empty && this.#held.trimEnd().endsWith(message) && this.#tag === "") this.#emptyCall()
    const tag = this.#tag
    this.#tag = ""
    if (this.#place !== "body" && !this.#open) this.#giveBack()
    this.#add(this.#tag + tag)
    this.#tag = ""
    this.#flush()
    if (this.#open) this.#finish(false)
  }

  #newObject(): JsonObject {
    return new JsonObject({ open: false, argument: (json) => this.#ready += json, begin: () => {}, finish: () => {}, settle: () => {} })
  }

  #step(unit: string): void {
    this.work++
    switch (this.#place) {
      case "role":
      case "header":
        return this.#stepHeader(unit)
      case "body":
        return this.#stepBody(unit)
      case "call":
        return this.#stepCall(unit)
    }
  }

  #stepHeader(unit: string): void {
    this.#held += unit
    const held = this.#held
    const begins = (text: string) => text.length < held.length ? held.startsWith(text) : text.startsWith(held)
    if (this.#place === "role" && role.startsWith(held)) {
      if (held !== role) return
      this.#take(held)
      this.#held = ""
      this.#place = "header"
      return
    }
    if (unit === "\n" || held.length > longestHeader || !headerStarts.some(begins)) return this.#giveBack()
    if (unit !== ">" || !held.endsWith(message)) return
    this.work += held.length
    const [, before, name, after] = header.exec(held) ?? []
    if (before === undefined && name === undefined && after === undefined && held !== message) return this.#giveBack()
    const recipient = this.#calls ? before ?? after : undefined
    if (recipient === undefined) return this.#beginBody(name === "analysis" ? "reasoning" : "text")
    this.#name = recipient.startsWith("functions.") ? recipient.slice("functions.".length) : recipient
    this.#flush()
    this.#object = this.#newObject()
    this.#place = "call"
  }

  #beginBody(kind: Kind): void {
    this.#flush()
    this.#take(this.#held)
    this.#held = ""
    this.#kind = kind
    this.#fresh = true
    this.#place = "body"
  }

  /** What was held is text: it is part of the body before it, or, after a message's end, a body without a header. */
  #giveBack(): void {
    const held = this.#held
    this.work += held.length
    this.#held = ""
    if (this.#place === "call") this.#ready = ""
    if (this.#kind === "between" || this.#place === "call") this.#beginBody("text")
    this.#place = "body"
    const { length } = held
    // A tag may begin with the last character.
    if (held.endsWith("<")) {
      this.#add(held.slice(0, length - 1))
      this.#tag = "<"
    } else this.#add(held)
  }

  #stepBody(unit: string): void {
    const tag = this.#tag + unit
    const found = bodyTags.find((text) => text.startsWith(tag))
    if (found === undefined) {
      this.#add(this.#tag)
      this.#tag = ""
      if (tag !== unit) return this.#stepBody(unit)
      return this.#add(unit)
    }
    this.#tag = found === tag ? "" : tag
    if (found === tag) this.#endBody(tag)
  }

  #endBody(tag: string): void {
    this.#flush()
    if (this.#open) this.#finish(false)
    if (tag === start || tag === channel) {
      this.#held = tag
      this.#place = tag === start ? "role" : "header"
      if (this.#kind === "arguments") this.#kind = "between"
      return
    }
    this.#take(tag)
    this.#kind = "between"
    this.#place = "role"
  }

  #stepCall(unit: string): void {
    if (this.#object.empty && (this.#tag !== "" || unit === "<")) {
      const tag = this.#tag + unit
      const found = bodyTags.find((text) => text.startsWith(tag))
      this.#tag = found === undefined || found === tag ? "" : tag
      if (found === tag) {
        this.#emptyCall()
        this.#endBody(tag)
      } else if (found === undefined) {
        this.#held += tag.slice(0, -1)
        this.#giveBack()
        this.#stepBody(unit)
      }
      return
    }
    if (this.#object.empty && isSpace(unit)) {
      this.#held += unit
      return
    }
    if (!this.#object.step(unit)) {
      if (!this.#open) this.#giveBack()
      else {
        this.#place = "body"
        this.#kind = "arguments"
      }
      return this.#stepBody(unit)
    }
    if (this.#open) this.#take(unit)
    else this.#held += unit
    if (!this.#open && this.#object.certain) this.#begin()
    if (this.#object.done) this.#finish(true)
  }

  #begin(): void {
    if (this.#source !== "") this.#sink.source?.(this.#source)
    this.#source = ""
    this.#sink.source?.(this.#held)
    this.#held = ""
    this.#open = true
    this.#kind = "arguments"
    this.#sink.start(this.#name)
  }

  #emptyCall(): void {
    this.#ready = "{}"
    this.#begin()
    this.#finish(true)
  }

  #finish(whole: boolean): void {
    this.#flush()
    this.#open = false
    this.#kind = "between"
    this.#place = "body"
    // What is none may become text.
    this.#anyText ||= !whole
    this.#sink.end(whole)
    this.#sink.settle?.(whole)
  }

  /** Hands a part of a body on. */
  #add(text: string): void {
    if (text === "") return
    if (this.#kind === "between") {
      if (isSpace(text)) return this.#take(text)
      this.#beginBody("text")
    }
    if (this.#fresh && (this.#kind === "text" ? this.#anyText : this.#anyReasoning)) this.#ready += "\n"
    this.#fresh = false
    this.#ready += text
    if (this.#kind === "text") this.#anyText = true
    if (this.#kind === "arguments") this.#take(text)
  }

  #take(text: string): void {
    if (this.#sink.source === undefined) return
    this.#flushText()
    this.#source += text
  }

  #flush(): void {
    this.#flushText()
    if (this.#source !== "") this.#sink.source?.(this.#source)
    this.#source = ""
    if (this.#open && this.#ready !== "") {
      this.#sink.argument(this.#ready)
      this.#ready = ""
    }
  }

  #flushText(): void {
    const ready = this.#ready
    if (ready === "" || this.#place === "call" || this.#open) return
    this.#ready = ""
    if (this.#source !== "") this.#sink.source?.(this.#source)
    this.#source = ""
    if (this.#kind !== "reasoning") return this.#sink.text(ready)
    const text = this.#anyReasoning ? ready : this.#blank + ready
    if (!this.#anyReasoning && text.trim() === "") {
      this.#blank = text
      return
    }
    this.#anyReasoning = true
    this.#sink.reasoning?.(text)
  }
}

/** gpt-oss. Where no tools are offered, a message is what its channel says, whoever receives it. */
export const harmony: ToolCallSyntax = {
  name: "harmony",
  matches: (renderedCall) => renderedCall.includes(message) && / to=functions\.|<\|channel\|>/.test(renderedCall),
  markers: [start, channel, message, constrain, ...ends],
  marksReasoning: true,
  parser: (sink, tools) => new HarmonyParser(sink, tools.length > 0)
}
