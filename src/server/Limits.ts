import { Context } from "effect"

/** Bounds that protect the server; the defaults are what the CLI runs with. */
export interface LimitsValue {
  /** Largest request body, before and after decompression, in bytes. */
  readonly bodyBytes: number
  /** A stream without output for this long gets a comment. */
  readonly keepAliveMs: number
  /** A client that reads nothing for this long while output waits is disconnected. */
  readonly slowReaderMs: number
  /** A stream's status waits this long for the first output, so that an early failure is a real status. */
  readonly headMs: number
  /** How long a client may take to send a request's headers, and with its body. */
  readonly headersMs: number
  readonly requestMs: number
  /** Largest request line and headers together, in bytes. */
  readonly headerBytes: number
  /** How long one WebSocket connection may last, as OpenAI's do. */
  readonly socketMs: number
  /** How long a closing server waits for running requests. */
  readonly drainMs: number
}

export const Limits = Context.Reference<LimitsValue>("mashbox/server/Limits", {
  defaultValue: () => ({
    bodyBytes: 16 * 1024 * 1024,
    keepAliveMs: 10_000,
    slowReaderMs: 30_000,
    headMs: 1_000,
    headersMs: 10_000,
    requestMs: 120_000,
    headerBytes: 16 * 1024,
    socketMs: 3_600_000,
    drainMs: 600_000
  })
})
