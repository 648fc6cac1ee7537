import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { ByteSize, Deferred, Effect, Equal, Layer } from "effect"
import { HttpIncomingMessage, HttpRouter } from "effect/http"
import { Settings } from "../Settings.ts"
import { Draining } from "./Draining.ts"
import { DrainingServer } from "./DrainingServer.ts"
import * as Guards from "./Guards.ts"
import { Limits, type LimitsValue } from "./Limits.ts"
import { ConnectionResponses, ResponseStore } from "./ResponseStore.ts"
import * as Routes from "./Routes.ts"
import { webSocketOptions } from "./SocketConnection.ts"
import { type OnRefused, refuseUnparsed } from "./Unparsed.ts"

/** For the last packets of a connection that the server has ended. */
const lingerMs = 5_000

const makeNodeServer = (limits: LimitsValue, onRefused: OnRefused): DrainingServer => {
  const server = new DrainingServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: Math.min(5_000, limits.headersMs, limits.requestMs),
    keepAliveTimeout: 75_000,
    maxHeaderSize: limits.headerBytes
  }, lingerMs)
  refuseUnparsed(server, onRefused)
  server.on("upgrade", (request, socket) => {
    Equal.byReferenceUnsafe(request)
    Equal.byReferenceUnsafe(socket)
  })
  server.on("request", (request, response) => {
    // Errors carry the request, and Effect hashes errors: not by the structure of Node's objects, which lead to every connection.
    Equal.byReferenceUnsafe(request)
    Equal.byReferenceUnsafe(response)
  })
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
  const log = Effect.runForkWith(yield* Effect.context<never>())
  const server = makeNodeServer(limits, (refusal) => log(Effect.logInfo("request", refusal)))
  const draining = Deferred.makeUnsafe<void>()
  server.once("draining", () => Deferred.doneUnsafe(draining, Effect.void))
  return layerApp.pipe(
    Layer.provide([ResponseStore.layer, ConnectionResponses.layer]),
    Layer.provide(Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limits.bodyBytes))),
    Layer.provide(Layer.succeed(Draining, { now: () => !server.listening, begun: Deferred.await(draining) })),
    Layer.provideMerge(
      NodeHttpServer.layer(() => server, {
        host: settings.host,
        port: settings.port,
        gracefulShutdownTimeout: limits.drainMs,
        websocket: webSocketOptions(limits)
      })
    )
  )
}))
