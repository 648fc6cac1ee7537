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

export interface ReasoningRequest {
  readonly conversation: Conversation
  /** Where the prompt leaves the model. */
  readonly state: ReasoningState
  /** Tokens, where the request says. */
  readonly budget: number | undefined
}

/** How the reasoning of one request is limited: by its budget, or by its effort where the template does not act on that. */
export type ReasoningLimits = (request: ReasoningRequest) => PassageLimit | undefined

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

    if (syntax.marksReasoning === true) {
      const end = single("<|end|>")
      const begin = yield* encode("<|channel|>analysis<|message|>")
      const next = yield* encode(`${closingSentence.trimEnd()}<|end|><|start|>assistant`)
      const answer = yield* encode("<|channel|>final<|message|>")
      return ({ budget, conversation: { templateVariables, tools } }) => {
        const tokens = budget ?? (format.takesEffort ? undefined : effortBudget(templateVariables["reasoning_effort"]))
        // Where there are tools, the next message may be a call.
        return end === undefined || tokens === undefined
          ? undefined
          : { tokens, begin, end, forced: tools.length > 0 ? next : [...next, ...answer] }
      }
    }

    const pairs = new Map<string, Omit<PassageLimit, "tokens">>()
    for (const [open, close] of format.tags) {
      const end = single(close)
      if (end === undefined) continue
      const after = open === format.tags[0]?.[0] ? format.afterReasoning : "\n\n"
      pairs.set(close, { begin: yield* encode(open), end, forced: yield* encode(`${closingSentence}${close}${after}`) })
    }
    const first = format.tags.map(([, close]) => pairs.get(close)).find((pair) => pair !== undefined)
    return ({ budget, conversation, state }) => {
      const tokens = budget ?? (format.takesEffort ? undefined : effortBudget(conversation.templateVariables["reasoning_effort"]))
      if (tokens === undefined || state._tag === "Closed") return undefined
      const pair = state._tag === "Open" ? pairs.get(state.closing) : first
      return pair === undefined ? undefined : { ...pair, tokens, begin: state._tag === "Open" ? [] : pair.begin }
    }
  })
