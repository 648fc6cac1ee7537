import { type IncomingMessage, Server as HttpServer, type ServerOptions, type ServerResponse } from "node:http"
import type { Socket } from "node:net"

/**
 * Node's server, except that closing it ends every connection as soon as no request runs on it, also those that never had one. One that was
 * upgraded is its protocol's to end: "draining" tells of the close.
 */
export class DrainingServer extends HttpServer {
  private readonly running = new Map<Socket, number>()
  private draining = false

  /** `lingerMs`: how long the client of an upgrade may keep the connection after the server has ended its side, which Node does not watch. */
  constructor(options: ServerOptions, lingerMs: number) {
    super(options)
    this.on("connection", (socket: Socket) => {
      this.running.set(socket, 0)
      socket.once("close", () => this.running.delete(socket))
    })
    this.on("request", (request: IncomingMessage, response: ServerResponse) => {
      this.count(request.socket, 1)
      response.once("close", () => {
        this.count(request.socket, -1)
        if (this.draining) this.endUnused(request.socket)
      })
    })
    this.on("upgrade", ({ socket }: IncomingMessage) => {
      this.count(socket, 1)
      socket.once("finish", () => {
        this.count(socket, -1)
        if (this.draining) return this.endUnused(socket)
        const linger = setTimeout(() => socket.destroy(), lingerMs)
        socket.once("close", () => clearTimeout(linger))
      })
    })
  }

  override close(callback?: (error?: Error) => void): this {
    this.draining = true
    this.emit("draining")
    super.close(callback)
    for (const socket of this.running.keys()) this.endUnused(socket)
    return this
  }

  private count(socket: Socket, change: number): void {
    const requests = this.running.get(socket)
    if (requests !== undefined) this.running.set(socket, requests + change)
  }

  private endUnused(socket: Socket): void {
    if (this.running.get(socket) === 0) socket.destroySoon()
  }
}
