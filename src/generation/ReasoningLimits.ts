import { Effect } from "effect"
import type { Conversation } from "../domain/Conversation.ts"
import { effortBudget } from "../domain/ReasoningBudget.ts"
import type { PassageLimit } from "../engine/Native.ts"
import type { ChatTemplate } from "../prompt/ChatTemplate.ts"
import { type ReasoningState, usualReasoning } from "../prompt/Reasoning.ts"
import type { Tokenizer } from "../tokenizer/Tokenizer.ts"
import type { ToolCallSyntax } from "./tools/ToolCallParser.ts"

/** What the model is made to write when it has used up its reasoning, so that it knows why it stops. */
const closingSentence = "\n\nThat is all the thinking there is time for; now I answer.\n"

/** Of the output of a forced call, what its reasoning leaves for it: half, within these. */
const leastForCall = 128
const mostForCall = 4096

/** Tokens of reasoning in an output of at most so many that has to be a call. */
const beforeCall = (most: number): number => Math.max(0, most - Math.max(leastForCall, Math.min(Math.ceil(most / 2), mostForCall)))

export interface ReasoningRequest {
  readonly conversation: Conversation
  /** Where the prompt leaves the model. */
  readonly state: ReasoningState
  /** Tokens, where the request says. */
  readonly budget: number | undefined
  /** The output has to be a call, in at most so many tokens. */
  readonly callWithin?: number
}

export interface ReasoningLimit {
  readonly tokens: number
  /** Forces its end; absent where reasoning has no end that could be forced, or where the output's grammar lets none begin. */
  readonly passage?: PassageLimit
}

/**
 * How the reasoning of one request is limited: by its budget, or by its effort where the template does not act on that; before a forced call also by
 * what the call needs.
 */
export type ReasoningLimits = (request: ReasoningRequest) => ReasoningLimit | undefined

/** Reasoning can be limited where single tokens mark its end. */
export const make = (
  template: ChatTemplate["Service"],
  tokenizer: Tokenizer["Service"],
  syntax: ToolCallSyntax
): Effect.Effect<ReasoningLimits> =>
  Effect.gen(function*() {
    const format = template.reasoning ?? usualReasoning
    const encode = (text: string) => Effect.map(tokenizer.encode({ text, untrusted: [], addBos: false }), (tokens) => Array.from(tokens))
    const single = (text: string) => {
      const token = tokenizer.tokenId(text)
      return token === undefined ? undefined : [token]
    }

    const tokensOf = ({ budget, callWithin, conversation: { templateVariables } }: ReasoningRequest): number | undefined => {
      const asked = budget ?? (format.takesEffort ? undefined : effortBudget(templateVariables["reasoning_effort"]))
      return callWithin === undefined ? asked : Math.min(asked ?? Infinity, beforeCall(callWithin))
    }

    if (syntax.marksReasoning === true) {
      const end = single("<|end|>")
      const begin = yield* encode("<|channel|>analysis<|message|>")
      const next = "<|end|><|start|>assistant"
      const answer = yield* encode("<|channel|>final<|message|>")
      const closed = yield* encode(next)
      const told = yield* encode(closingSentence.trimEnd() + next)
      return (request) => {
        const tokens = tokensOf(request)
        if (tokens === undefined) return undefined
        if (end === undefined || (tokens === 0 && request.callWithin !== undefined)) return { tokens }
        const forced = tokens === 0 ? closed : told
        // The output of a forced call has one message of reasoning at most, and what is forced fits in there only. Its header may be cut into any tokens.
        if (request.callWithin !== undefined) return { tokens, passage: { tokens: tokens + begin.length, begin: [], end, forced } }
        // Where there are tools, the next message may be a call.
        const passage = { tokens, begin, end, forced: request.conversation.tools.length > 0 ? forced : [...forced, ...answer] }
        return { tokens, passage }
      }
    }

    const pairs = new Map<
      string,
      Omit<PassageLimit, "tokens" | "forced"> & { readonly closed: ReadonlyArray<number>; readonly told: ReadonlyArray<number> }
    >()
    for (const [open, close] of format.tags) {
      const end = single(close)
      if (end === undefined) continue
      const after = open === format.tags[0]?.[0] ? format.afterReasoning : "\n\n"
      pairs.set(close, {
        begin: yield* encode(open),
        end,
        closed: yield* encode(`\n${close}${after}`),
        told: yield* encode(`${closingSentence}${close}${after}`)
      })
    }
    const first = format.tags.map(([, close]) => pairs.get(close)).find((pair) => pair !== undefined)
    return (request) => {
      const { state } = request
      const tokens = tokensOf(request)
      if (tokens === undefined || state._tag === "Closed") return undefined
      const pair = state._tag === "Open" ? pairs.get(state.closing) : first
      if (pair === undefined) return undefined
      const { begin, closed, end, told } = pair
      return { tokens, passage: { tokens, begin: state._tag === "Open" ? [] : begin, end, forced: tokens === 0 ? closed : told } }
    }
  })
