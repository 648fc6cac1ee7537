import { WebSocket } from "@effect/platform-node/NodeWS"
import { Schema } from "effect"
import { once } from "node:events"
import { SocketEvent } from "../../schema/openai/ResponsesSocket.ts"

const readEvent = Schema.decodeUnknownSync(SocketEvent, { onExcessProperty: "error" })

const terminal: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", "response.failed", "error"])

/** A client of Responses over WebSocket; every message that it gets must be one of the contract. */
export class SocketClient {
  readonly socket: WebSocket
  readonly received: Array<SocketEvent> = []
  /** The code that the connection ended with. */
  readonly closed: Promise<number>
  private readonly waiting: Array<() => void> = []
  private read = 0
  private failure: unknown

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on("message", (data) => {
      try {
        this.received.push(readEvent(JSON.parse(String(data))))
      } catch (error) {
        this.failure = error
      }
      for (const wake of this.waiting.splice(0)) wake()
    })
    this.closed = new Promise((resolve) =>
      socket.on("close", (code) => {
        resolve(code)
        for (const wake of this.waiting.splice(0)) wake()
      })
    )
    socket.on("error", () => {})
  }

  /** `url`: of the server, without a path. */
  static async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<SocketClient> {
    const client = new SocketClient(new WebSocket(`${url.replace("http", "ws")}/v1/responses`, { headers }))
    await once(client.socket, "open")
    return client
  }

  /** A text as it is, or a `response.create` of these fields. */
  send(message: string | Readonly<Record<string, unknown>>): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify({ type: "response.create", ...message }))
  }

  async next(): Promise<SocketEvent> {
    while (this.read === this.received.length) {
      if (this.failure !== undefined) throw this.failure
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error("the connection ended")
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
    const event = this.received[this.read++]
    if (event === undefined) throw new Error("nothing received")
    return event
  }

  /** Everything up to the end of the next response, or to an error. */
  async answer(): Promise<ReadonlyArray<SocketEvent>> {
    const events: Array<SocketEvent> = []
    while (true) {
      const event = await this.next()
      events.push(event)
      if (terminal.has(event.type)) return events
    }
  }

  async close(): Promise<number> {
    this.socket.close()
    return this.closed
  }
}
