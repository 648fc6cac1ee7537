import { Equal } from "effect"
import { Readable } from "node:stream"
import type { SocketWriter } from "./SocketWriter.ts"
import { ReaderWatch, type StreamOutput } from "./StreamOutput.ts"

/** Bytes that may wait in the server for a client that does not read. */
const bufferBytes = 64 * 1024

/** The body of a response of server-sent events. */
export class SseOutput implements StreamOutput {
  // Effect hashes a response that fails after its head; by structure that would walk from here through every connection of the server.
  readonly body = Equal.byReferenceUnsafe(new Readable({ highWaterMark: bufferBytes, read() {} }))
  private readonly socket: SocketWriter | undefined
  private readonly reader: ReaderWatch
  private begun = false

  constructor(socket: SocketWriter | undefined, now: () => number) {
    this.socket = socket
    this.reader = new ReaderWatch(() => this.body.readableLength + (socket?.buffered ?? 0), now)
    // Destroying the body with an error would otherwise be an uncaught exception.
    this.body.on("error", () => {})
  }

  write(frames: string): void {
    if (this.body.destroyed) return
    this.reader.around(() => {
      if (!this.begun || this.body.readableLength > 0 || this.socket?.write(frames) !== true) this.body.push(Buffer.from(frames))
    })
    this.begun = true
  }

  end(): void {
    if (!this.body.destroyed) this.body.push(null)
  }

  cut(reason?: Error): void {
    this.body.destroy(reason)
  }

  get closed(): boolean {
    return this.body.destroyed
  }

  unreadMs(): number {
    return this.reader.unreadMs()
  }
}
