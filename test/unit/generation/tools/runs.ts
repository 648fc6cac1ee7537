import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { OutputCollector } from "../../../../src/domain/Output.ts"
import type { Tool } from "../../../../src/domain/Tool.ts"
import { OutputPipeline } from "../../../../src/generation/OutputPipeline.ts"
import { ReasoningSplitter } from "../../../../src/generation/ReasoningSplitter.ts"
import { CallHold } from "../../../../src/generation/tools/CallHold.ts"
import { CallSpacing } from "../../../../src/generation/tools/CallSpacing.ts"
import type { ToolCallSyntax } from "../../../../src/generation/tools/ToolCallParser.ts"
import { type ReasoningFormat, type ReasoningState } from "../../../../src/prompt/Reasoning.ts"

const root = join(import.meta.dirname, "../../../..")

export interface Transcript {
  readonly id: string
  readonly template?: string
  readonly prompt_tail: string
  readonly raw: string
  readonly tools?: ReadonlyArray<Tool>
  readonly expect: {
    readonly content: string
    readonly reasoning: string | null
    readonly tool_calls: ReadonlyArray<{ readonly name: string; readonly arguments: unknown; readonly id?: string }>
  }
}

/** The transcripts of one syntax; undefined where this machine has none. */
export const transcripts = (name: string): ReadonlyArray<Transcript> | undefined => {
  const path = [join(root, `test/fixtures/golden/toolcalls/${name}.json`), join(root, `../shared/golden/toolcalls/${name}.json`)].find((
    place
  ) => existsSync(place))
  return path === undefined ? undefined : JSON.parse(readFileSync(path, "utf8")).cases
}

/** Numbers from 0 to 1 that follow from the seed. */
export const random = (seed: number) => () => {
  seed = seed + 0x6d2b79f5 | 0
  let hash = Math.imul(seed ^ seed >>> 15, 1 | seed)
  hash = hash + Math.imul(hash ^ hash >>> 7, 61 | hash) ^ hash
  return ((hash ^ hash >>> 14) >>> 0) / 2 ** 32
}

/** The text in pieces of up to 12 units. */
export const cuts = (text: string, next: () => number, longest = 12): Array<string> => {
  const pieces: Array<string> = []
  for (let at = 0; at < text.length;) {
    const length = 1 + Math.floor(next() * longest)
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

export interface Read {
  readonly text: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly text: string }>
}

export interface RunOptions {
  readonly syntax: ToolCallSyntax
  readonly tools?: ReadonlyArray<Tool>
  readonly reasoning?: ReasoningState
  readonly format?: ReasoningFormat
  readonly stops?: ReadonlyArray<string>
  /** Characters of a call that are held back. Default 0. */
  readonly patience?: number
}

/** Output of a pipeline that is given these texts, one as each token's. */
export const piped = (pieces: ReadonlyArray<string>, options: RunOptions): Read => {
  const output = new OutputCollector()
  let ids = 0
  const pipeline = new OutputPipeline({
    decoder: { push: (token) => pieces[token] ?? "", end: () => "" },
    ...(options.reasoning === undefined ? {} : { reasoning: options.reasoning }),
    ...(options.format === undefined ? {} : { format: options.format }),
    stopStrings: options.stops ?? [],
    tools: {
      syntax: options.syntax,
      offered: options.tools ?? [],
      newId: () => `call_${ids++}`,
      parallel: true,
      patience: options.patience ?? 0
    },
    emit: (event) => {
      if (event._tag !== "Finish") output.add(event)
    }
  })
  pieces.forEach((_, token) => pipeline.push(token))
  pipeline.end()
  return { text: output.text, reasoning: output.reasoning, calls: output.toolCalls.map(({ arguments: text, name }) => ({ name, text })) }
}

export interface Settled extends Read {
  /** What the model wrote, put together again from texts and calls. */
  readonly source: string
}

/** The same of a parser by itself, whose calls are held back until their end. */
export const settled = (pieces: ReadonlyArray<string>, options: RunOptions): Settled => {
  let text = ""
  let reasoning = ""
  let source = ""
  const calls: Array<{ name: string; text: string }> = []
  const parts: Array<string | undefined> = []
  const hold = new CallHold({
    text: (own) => parts.push(own),
    reasoning: (own) => reasoning += own,
    start: (name) => {
      parts.push(undefined)
      calls.push({ name, text: "" })
    },
    argument: (own) => {
      const call = calls.at(-1)
      if (call !== undefined) call.text += own
    },
    end: (whole) => {
      if (!whole) throw new Error("a call that was held back and is none")
    }
  }, Infinity)
  const written = (own: string) => source += own
  const parser = options.syntax.parser({
    text: (own) => {
      written(own)
      hold.text(own)
    },
    reasoning: (own) => {
      written(own)
      hold.reasoning(own)
    },
    source: (own) => {
      written(own)
      hold.source(own)
    },
    start: (name, id) => hold.start(name, id),
    argument: (own) => hold.argument(own),
    end: (whole, tentative) => hold.end(whole, tentative),
    settle: (stands) => hold.settle(stands)
  }, options.tools ?? [])
  const splitter = options.syntax.marksReasoning === true
    ? undefined
    : new ReasoningSplitter((own) => parser.push(own), (own) => reasoning += own, options.reasoning)
  for (const piece of pieces) (splitter ?? parser).push(piece)
  splitter?.end()
  parser.end()
  hold.close()
  const spacing = new CallSpacing((own) => text += own, options.format?.turnEndsInBreak)
  for (const part of parts) {
    if (part === undefined) spacing.call()
    else spacing.text(part)
  }
  spacing.end()
  return { text, reasoning, calls, source }
}
