import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { connect } from "node:net"
import { DrainingServer } from "../../../src/server/DrainingServer.ts"

const serving = async (lingerMs: number) => {
  const server = new DrainingServer({}, lingerMs)
  server.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 426 Upgrade Required\r\nconnection: close\r\n\r\n"))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  const client = connect({ port: typeof address === "object" && address !== null ? address.port : 0, allowHalfOpen: true })
  client.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n")
  return { server, client }
}

describe("a client that keeps the connection of a refused upgrade", () => {
  it("loses it after a while", async () => {
    const { client, server } = await serving(10)
    const [socket] = await once(server, "upgrade").then(([request]) => [request.socket])
    client.resume()
    await once(socket, "close")
    client.destroy()
    server.close()
  })

  it("loses it at once when the server closes", async () => {
    const { client, server } = await serving(1_000_000)
    await once(client.resume(), "end")
    const closed = once(server, "close")
    server.close()
    await closed
    assert.isFalse(client.destroyed)
    client.destroy()
  })
})
