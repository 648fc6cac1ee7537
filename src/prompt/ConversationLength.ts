import type { Conversation, Message } from "../domain/Conversation.ts"

/** UTF-16 units of a message's texts. */
export const messageLength = (message: Message): number =>
  (message.content?.length ?? 0) +
  (message.role === "assistant"
    ? (message.reasoning?.length ?? 0) + (message.toolCalls ?? []).reduce((total, call) => total + call.arguments.length, 0)
    : 0)

/** Whether a conversation's texts, its tools' schemas among them, have more than this many UTF-16 units; looks no further than it has to. */
export const isLonger = ({ messages, tools }: Conversation, limit: number): boolean => {
  // An empty message is some work too.
  let left = limit
  for (const message of messages) if ((left -= 16 + messageLength(message)) < 0) return true
  const measure = (value: unknown): boolean => {
    if (typeof value === "string") left -= value.length
    else if (typeof value !== "object" || value === null) left -= 4
    else for (const [key, item] of Object.entries(value)) if ((left -= key.length) < 0 || measure(item)) return true
    return left < 0
  }
  return measure(tools)
}
