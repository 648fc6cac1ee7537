import { Context } from "effect"
import { createHash, randomUUID } from "node:crypto"

/** What is told of one request in its log line: never a prompt, an output or a key. */
export interface RequestRecordValue {
  readonly id: string
  readonly method: string
  /** The route's pattern, never the client's text. */
  route: string
  tenant: string
  status: number
  /** Why the request ended as it did. */
  outcome: "ok" | "refused" | "failed" | "client_left" | "slow_reader" | "server_closed"
  /** The error's kind, for example "ContextTooLong". */
  error?: string
  session?: string
  /** The id of the request that opened the WebSocket which this one came over. */
  readonly connection?: string
  stream?: boolean
  promptTokens?: number
  cachedTokens?: number
  completionTokens?: number
  finish?: string
  queueMs?: number
  /** From the request's arrival to its first output. */
  firstOutputMs?: number
}

/** The record of the request that is being answered; the guards set it. */
export const RequestRecord = Context.Reference<RequestRecordValue>("mashbox/server/RequestRecord", {
  defaultValue: () => ({ id: "", method: "", route: "", tenant: "local", status: 0, outcome: "ok" })
})

/** The client's own id where it is a plain one. */
export const requestId = (given?: string) =>
  given !== undefined && /^[\w.-]{1,64}$/.test(given) ? given : `req_${randomUUID().replaceAll("-", "")}`

/** A client's session name, of which only a hash is ever shown. */
export const sessionTag = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 12)

/** The tag of the session that a request's headers name. Each agent of a Claude Code session is a session of its own. */
export const sessionOf = (headers: Readonly<Record<string, string | undefined>>): string | undefined => {
  const claude = headers["x-claude-code-session-id"]
  const agent = headers["x-claude-code-agent-id"]
  const name = headers["x-session-id"] ||
    (claude && agent ? `${claude} ${agent}` : claude) ||
    headers["session-id"] ||
    headers["x-session-affinity"]
  return name ? sessionTag(name) : undefined
}
