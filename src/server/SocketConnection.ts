import type * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect } from "effect"
import { CloseEvent, type SocketError, type Writer } from "effect/socket/Socket"
import type { Socket } from "node:net"
import { splitMessages } from "../dialect/OpenAiResponsesSocket.ts"
import type { LimitsValue } from "./Limits.ts"
import { ReaderWatch, type StreamOutput } from "./StreamOutput.ts"
import { textFrames } from "./WebSocketFrames.ts"

/** Bytes that may wait for a client before it gets no answers to more of what it sends. */
const bufferBytes = 64 * 1024

/** A dead client is found by the kernel after about this long. */
const keepAliveMs = 30_000

/** How connections are upgraded: no compression, bounded messages, and one message or ping in a turn of the event loop. */
export const webSocketOptions = (limits: LimitsValue): NonNullable<NodeHttpServer.Options["websocket"]> => ({
  allowSynchronousEvents: false,
  clientTracking: false,
  maxPayload: limits.bodyBytes
})

/** What goes out over one upgraded connection. */
export class SocketConnection {
  private readonly socket: Socket
  private readonly writer: Writer
  private readonly reader: ReaderWatch
  private ending = false
  /** Whether the server ended it because the client did not read. */
  slow = false

  constructor(socket: Socket, writer: Writer, now: () => number) {
    this.socket = socket
    this.writer = writer
    this.reader = new ReaderWatch(() => socket.writableLength, now)
    socket.setKeepAlive(true, keepAliveMs)
  }

  /** Sends messages by one system call. */
  send(messages: ReadonlyArray<string>): void {
    if (!this.closed) this.reader.around(() => this.write(messages))
  }

  /** Ends it with a code of RFC 6455 7.4; nothing is sent after that. */
  close(code: number, reason: string): Effect.Effect<void, SocketError> {
    return Effect.suspend(() => {
      this.ending = true
      return this.writer.write(new CloseEvent(code, reason))
    })
  }

  /**
   * Past the WebSocket's own layers as long as nothing waits before the network: an end that the client asked for waits there until the
   * connection is ended with it, so that no message comes after it.
   */
  private write(messages: ReadonlyArray<string>): void {
    const { socket } = this
    if (!this.ending && socket.writableLength === 0 && socket.writableCorked === 0 && !socket.writableEnded) {
      socket.write(textFrames(messages), "latin1")
      return
    }
    const [first, ...more] = messages
    if (first !== undefined) Effect.runSyncExit(this.writer.writeAll([first, ...more]))
  }

  unreadMs(): number {
    return this.reader.unreadMs()
  }

  get closed(): boolean {
    return this.socket.destroyed
  }

  /** Ends it without a word, since the client would not read one. */
  cut(): void {
    this.slow = true
    this.socket.destroy()
  }

  /** Waits until little enough waits for the client. */
  readonly room: Effect.Effect<void> = Effect.callback((resume) => {
    const { socket } = this
    if (socket.writableLength < bufferBytes || socket.destroyed) return resume(Effect.void)
    const done = () => resume(Effect.void)
    socket.once("drain", done).once("close", done)
    return Effect.sync(() => socket.off("drain", done).off("close", done))
  })
}

/** The messages of one response. */
export class MessageOutput implements StreamOutput {
  private readonly connection: SocketConnection
  private ended = false
  /** Whether there were any. */
  written = false

  constructor(connection: SocketConnection) {
    this.connection = connection
  }

  write(frames: string): void {
    if (this.closed) return
    this.written = true
    this.connection.send(splitMessages(frames))
  }

  end(): void {
    this.ended = true
  }

  cut(reason?: Error): void {
    this.ended = true
    if (reason !== undefined) this.connection.cut()
  }

  get closed(): boolean {
    return this.ended || this.connection.closed
  }

  unreadMs(): number {
    return this.connection.unreadMs()
  }
}
