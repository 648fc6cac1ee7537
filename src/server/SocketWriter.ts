import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type { HttpServerRequest } from "effect/http"
import { ServerResponse } from "node:http"

/**
 * A way past Node's stream and framing layers for an event stream that is under way: one chunk of chunked transfer coding (RFC 9112 7.1), one
 * system call. It takes a chunk only while nothing is buffered before the socket, so order and back-pressure stay with the response.
 */
export class SocketWriter {
  private readonly response: ServerResponse

  private constructor(response: ServerResponse) {
    this.response = response
  }

  /** undefined where the request does not come from Node's HTTP/1 server. */
  static make(request: HttpServerRequest.HttpServerRequest): SocketWriter | undefined {
    const response = NodeHttpServerRequest.toServerResponse(request)
    return response instanceof ServerResponse ? new SocketWriter(response) : undefined
  }

  /** Sends the text and is true, or does nothing and is false. Only for a response whose head and first bytes were written already. */
  write(text: string): boolean {
    const { response } = this
    const { socket } = response
    if (
      socket === null || !response.headersSent || !response.chunkedEncoding || response.writableEnded || response.writableLength !== 0 ||
      socket.writableCorked !== 0 || socket.destroyed
    ) return false
    const bytes = Buffer.byteLength(text)
    socket.write(`${bytes.toString(16)}\r\n${text}\r\n`, bytes === text.length ? "latin1" : "utf8")
    return true
  }

  /** Bytes that the client has not taken yet. */
  get buffered(): number {
    return this.response.writableLength
  }
}
