import { Schema } from "effect"
import { ChatCompletionChunk } from "../../schema/openai/Chat.ts"
import { ErrorBody } from "../../schema/openai/Common.ts"

export interface CheckedCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** One choice as a client puts it together. */
export interface CheckedChoice {
  readonly content: string
  readonly reasoning: string
  readonly toolCalls: ReadonlyArray<CheckedCall>
  /** The call of an answer to a request with `functions`. */
  readonly functionCall: Omit<CheckedCall, "id"> | undefined
  /** undefined in a stream that failed. */
  readonly finishReason: string | undefined
  /** Pieces that content and arguments came in. */
  readonly deltas: number
}

/** A stream that was checked from its first frame to its last. */
export interface CheckedChat {
  readonly chunks: ReadonlyArray<ChatCompletionChunk>
  readonly choices: ReadonlyArray<CheckedChoice>
  readonly usage: ChatCompletionChunk["usage"]
  readonly progress: ReadonlyArray<NonNullable<ChatCompletionChunk["prompt_progress"]>>
  readonly comments: number
  /** The error that ended the stream. */
  readonly error: ErrorBody["error"] | undefined
}

export interface ChatExpectation {
  readonly choices?: number
  readonly includeUsage?: boolean
}

type Delta = ChatCompletionChunk["choices"][number]["delta"]

const readChunk = Schema.decodeUnknownSync(ChatCompletionChunk)
const isError = Schema.is(ErrorBody)

const fail = (message: string): never => {
  throw new Error(`Chat stream: ${message}`)
}

const check = (condition: boolean, message: string): void => {
  if (!condition) fail(message)
}

/** What one choice may say next. */
class ChoiceState implements CheckedChoice {
  content = ""
  reasoning = ""
  readonly toolCalls: Array<{ id: string; name: string; arguments: string }> = []
  functionCall: { name: string; arguments: string } | undefined
  finishReason: string | undefined
  deltas = 0
  private opened = false

  delta(delta: Delta, isProgress: boolean): void {
    check(this.finishReason === undefined, "a delta after the finish_reason")
    const keys = Object.keys(delta)
    if (!this.opened) {
      check(delta.role === "assistant" && delta.content === "" && keys.length === 2, "the first delta is not the role with empty content")
      this.opened = true
      return
    }
    check(delta.role === undefined, "a second role")
    if (isProgress) return check(keys.length === 0, "progress beside output")
    check(keys.length === 1, `a delta with ${keys.length} fields`)
    this.deltas++
    if (delta.content !== undefined) {
      check(delta.content !== "", "an empty text delta")
      this.content += delta.content
    } else if (delta.reasoning_content !== undefined) {
      check(delta.reasoning_content !== "", "an empty reasoning delta")
      check(this.content === "" && this.toolCalls.length === 0, "reasoning after the answer began")
      this.reasoning += delta.reasoning_content
    } else if (delta.function_call !== undefined) this.function(delta.function_call)
    else this.calls(delta.tool_calls ?? [])
  }

  finish(reason: string): void {
    check(this.opened, "a finish before the role")
    check(this.finishReason === undefined, "two finish_reasons")
    check(reason !== "tool_calls" || this.toolCalls.length > 0, "tool_calls without a call")
    check(reason !== "function_call" || this.functionCall !== undefined, "function_call without a call")
    check(reason !== "stop" || (this.toolCalls.length === 0 && this.functionCall === undefined), "stop with a call")
    if (reason === "function_call") JSON.parse(this.functionCall?.arguments ?? "")
    if (reason === "tool_calls") { for (const call of this.toolCalls) JSON.parse(call.arguments) }
    this.finishReason = reason
  }

  private function({ arguments: piece, name }: NonNullable<Delta["function_call"]>): void {
    check(this.toolCalls.length === 0, "calls in both forms")
    if (name !== undefined) {
      check(this.functionCall === undefined && piece === "", "a second call, or one that does not begin with empty arguments")
      this.functionCall = { name, arguments: "" }
      return
    }
    const open = this.functionCall ?? fail("arguments before any call")
    check(piece !== "", "an empty arguments delta")
    open.arguments += piece
  }

  private calls(calls: NonNullable<Delta["tool_calls"]>): void {
    const [call] = calls
    if (call === undefined || calls.length !== 1) return fail("a tool_calls delta without exactly one call")
    if (call.id !== undefined) {
      check(call.index === this.toolCalls.length, `call ${call.index} where ${this.toolCalls.length} is next`)
      check(/^call_[0-9a-f]{32}$/.test(call.id), `the call id ${call.id}`)
      check(this.toolCalls.every(({ id }) => id !== call.id), "a call id twice")
      check(call.type === "function" && call.function?.arguments === "", "a call that does not begin with empty arguments")
      this.toolCalls.push({ id: call.id, name: call.function?.name ?? fail("a call without a name"), arguments: "" })
      return
    }
    const open = this.toolCalls.at(-1) ?? fail("arguments before any call")
    check(call.index === this.toolCalls.length - 1, "arguments of a call that is not open")
    check(call.function?.name === undefined && call.type === undefined, "a call's name repeated")
    const piece = call.function?.arguments
    if (piece === undefined || piece === "") return fail("an empty arguments delta")
    open.arguments += piece
  }
}

const readFrames = (body: string): { readonly frames: ReadonlyArray<string>; readonly comments: number } => {
  check(body.endsWith("\n\n"), "the last frame is not complete")
  const all = body.slice(0, -2).split("\n\n")
  const frames = all.filter((frame) => !frame.startsWith(":"))
  for (const frame of frames) check(/^data: .+$/.test(frame), `not one data line: ${frame}`)
  return { frames: frames.map((frame) => frame.slice(6)), comments: all.length - frames.length }
}

/** The state machine of a Chat Completions stream: throws where a body leaves it, also at an end that is none. */
export const checkChatStream = (body: string, expectation: ChatExpectation = {}): CheckedChat => {
  const { comments, frames } = readFrames(body)
  const choices = Array.from({ length: expectation.choices ?? 1 }, () => new ChoiceState())
  const progress: Array<NonNullable<ChatCompletionChunk["prompt_progress"]>> = []
  const last = frames.at(-1) ?? fail("empty")
  const failure: unknown = last === "[DONE]" ? undefined : JSON.parse(last)
  check(failure === undefined || isError(failure), "ends with neither [DONE] nor an error")
  const chunks = frames.slice(0, -1).map((frame) => readChunk(JSON.parse(frame)))
  let usage: ChatCompletionChunk["usage"]
  for (const chunk of chunks) {
    const first = chunks[0] ?? chunk
    check(/^chatcmpl-[0-9a-f]{32}$/.test(chunk.id), `the id ${chunk.id}`)
    check(chunk.id === first.id && chunk.created === first.created && chunk.model === first.model, "chunks of different answers")
    check(usage === undefined, "a chunk after the usage")
    const [choice] = chunk.choices
    if (choice === undefined) {
      check(choices.every(({ finishReason }) => finishReason !== undefined), "usage before every choice has finished")
      usage = chunk.usage ?? fail("a chunk with neither a choice nor usage")
      check(chunk.timings !== undefined, "usage without timings")
      continue
    }
    check(chunk.choices.length === 1, "a chunk of several choices")
    const state = choices[choice.index] ?? fail(`choice ${choice.index}`)
    if (chunk.prompt_progress !== undefined) {
      progress.push(chunk.prompt_progress)
      check(state.deltas === 0, "progress after output")
    }
    if (choice.finish_reason === null) state.delta(choice.delta, chunk.prompt_progress !== undefined)
    else {
      check(Object.keys(choice.delta).length === 0, "output in the last chunk")
      check(chunk.timings !== undefined, "a finish without timings")
      state.finish(choice.finish_reason)
    }
  }
  if (failure === undefined) {
    check(choices.every(({ finishReason }) => finishReason !== undefined), "[DONE] before every choice has finished")
    check((usage !== undefined) === (expectation.includeUsage ?? false), "usage where it was not asked for, or none where it was")
  } else check(usage === undefined, "an error after the usage")
  return { chunks, choices, usage, progress, comments, error: isError(failure) ? failure.error : undefined }
}
