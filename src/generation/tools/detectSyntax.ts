import { Effect } from "effect"
import type { Conversation } from "../../domain/Conversation.ts"
import type { ChatTemplate } from "../../prompt/ChatTemplate.ts"
import { generic } from "./Generic.ts"
import { syntaxes } from "./syntaxes.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

const tool = { name: "mbxtool", description: "mbxdescription", parameters: { type: "object", properties: { mbxkey: { type: "string" } } } }

const call: Conversation = {
  messages: [
    { role: "user", content: "mbxuser" },
    { role: "assistant", content: null, toolCalls: [{ id: "mbxid0001", name: tool.name, arguments: "{\"mbxkey\": \"mbxvalue\"}" }] },
    { role: "tool", toolCallId: "mbxid0001", name: tool.name, content: "mbxresult" }
  ],
  tools: [tool],
  templateVariables: {}
}

export interface DetectedSyntax {
  readonly syntax: ToolCallSyntax
  /** An earlier call as the template shows it, "" where it shows none: tool mbxtool, parameter mbxkey, value mbxvalue. */
  readonly sample: string
}

/** How a model with this chat template writes tool calls: as the template shows it an earlier one. */
export const detectSyntax = (template: ChatTemplate["Service"]): Effect.Effect<DetectedSyntax> =>
  template.render(call).pipe(
    // A template without a place for tools may show calls all the same.
    Effect.catch(() => template.render({ ...call, tools: [] })),
    Effect.map(({ text }) => {
      const shown = text.slice(Math.max(0, text.indexOf("mbxuser")))
      return { syntax: syntaxes.find((syntax) => syntax.matches(shown)) ?? generic, sample: shown }
    }),
    Effect.orElseSucceed(() => ({ syntax: generic, sample: "" }))
  )
