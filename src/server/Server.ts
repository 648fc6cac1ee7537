import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { ByteSize, Effect, Layer } from "effect"
import { HttpIncomingMessage, HttpRouter } from "effect/http"
import type { Duplex } from "node:stream"
import { Settings } from "../Settings.ts"
import { DrainingServer } from "./DrainingServer.ts"
import * as Guards from "./Guards.ts"
import { Limits } from "./Limits.ts"
import * as Routes from "./Routes.ts"

const statusLines: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large"
}

/** What Node refuses before there is a request: a JSON body, and the connection is closed. */
const refuseUnparsed = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy()
  const status = statusLines[error.code ?? ""] ?? "400 Bad Request"
  const body = JSON.stringify({
    error: { message: `The request could not be read: ${status.slice(4)}.`, type: "invalid_request_error", param: null, code: null }
  })
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

const makeNodeServer = (): DrainingServer => {
  const server = new DrainingServer({
    headersTimeout: 10_000,
    requestTimeout: 120_000,
    connectionsCheckingInterval: 5_000,
    keepAliveTimeout: 75_000,
    maxHeaderSize: 16 * 1024
  })
  server.on("clientError", refuseUnparsed)
  return server
}

/** The routes behind the guards, on whatever `HttpServer` there is. */
export const layerApp = HttpRouter.serve(Layer.mergeAll(Routes.layer, Guards.layer), {
  disableLogger: true,
  disableListenLog: true,
  routerConfig: { ignoreDuplicateSlashes: false, ignoreTrailingSlash: true, maxParamLength: 512 }
})

/**
 * The server on the host and port of the settings. When its scope closes it stops taking connections, refuses new requests on those it has,
 * and waits for the running ones.
 */
export const layer = Layer.unwrap(Effect.gen(function*() {
  const settings = yield* Settings
  const limits = yield* Limits
  const server = makeNodeServer()
  return layerApp.pipe(
    Layer.provide(Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limits.bodyBytes))),
    Layer.provide(Layer.succeed(Guards.Draining, { now: () => !server.listening })),
    Layer.provideMerge(
      NodeHttpServer.layer(() => server, { host: settings.host, port: settings.port, gracefulShutdownTimeout: limits.drainMs })
    )
  )
}))
