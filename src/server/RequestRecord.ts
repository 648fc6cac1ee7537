import { Context } from "effect"
import { createHash } from "node:crypto"

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

/** A client's session name, of which only a hash is ever shown. */
export const sessionTag = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 12)
