import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Clock, Effect, FiberSet, Result, Semaphore } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Socket, SocketError } from "effect/socket/Socket"
import type { ErrorBody } from "../../schema/openai/Common.ts"
import * as Messages from "../dialect/OpenAiResponsesSocket.ts"
import { InvalidRequest, RequestRefused } from "../domain/Errors.ts"
import { Settings } from "../Settings.ts"
import { wireObjectOf } from "./Body.ts"
import { Draining } from "./Draining.ts"
import { Limits } from "./Limits.ts"
import { RequestRecord } from "./RequestRecord.ts"
import { ConnectionResponses } from "./ResponseStore.ts"
import { SocketConnection } from "./SocketConnection.ts"
import { create, forget, type Peer, recorded } from "./SocketResponse.ts"

/** Responses of one connection that are answered at once, and the names of lanes that it may have: OpenAI's own bounds. */
const mostRunning = 16
const mostStreams = 32

/** Requests of one connection that may be waiting or running. */
const mostRequests = 64

/** How long a client may take to answer the end of its connection. */
const closeMs = 5_000

/** A request in its lane; it stays there until it is answered. */
interface Job {
  readonly event: Messages.ResponseCreate
  /** Length of its text. */
  readonly size: number
}

type Lane = Array<Job>

/** Ends the connection of a client that reads nothing. */
const watchReader = (connection: SocketConnection) =>
  Effect.gen(function*() {
    const { keepAliveMs, slowReaderMs } = yield* Limits
    while (!connection.closed) {
      const unread = connection.unreadMs()
      if (unread >= slowReaderMs) return connection.cut()
      yield* Effect.sleep(Math.max(1, unread === 0 ? Math.min(keepAliveMs, slowReaderMs) : slowReaderMs - unread))
    }
  })

/** Serves one connection until it ends. Everything that runs for it ends with it. */
const serve = Effect.fnUntraced(function*(socket: Socket, request: HttpServerRequest.HttpServerRequest) {
  const record = yield* RequestRecord
  const limits = yield* Limits
  const draining = yield* Draining
  const unstored = yield* ConnectionResponses
  const clock = yield* Clock.Clock
  const { pull } = yield* socket.reader
  record.status = 101
  const writer = yield* socket.writer
  const net = NodeHttpServerRequest.toIncomingMessage(request).socket
  const connection = new SocketConnection(net, writer, () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)
  const peer: Peer = { connection, record, headers: request.headers, latest: new Map(), gone: false, retired: false }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      if (connection.slow) record.outcome = "slow_reader"
      for (const lane of peer.latest.keys()) forget(peer, unstored, lane)
    })
  )
  const lanes = new Map<string | undefined, Lane>()
  const running = yield* FiberSet.make<void>()
  const permits = yield* Semaphore.make(mostRunning)
  let requests = 0
  let size = 0

  const work = (lane: Lane) =>
    Effect.gen(function*() {
      for (let job = lane[0]; job !== undefined; job = lane[0]) {
        yield* permits.withPermit(create(peer, job.event))
        yield* connection.room
        lane.shift()
        requests--
        size -= job.size
      }
    })

  const refuse = (error: Messages.SocketError, lane?: string) =>
    Effect.andThen(recorded(peer, lane, () => Effect.fail(error)), connection.room)

  const receive = Effect.fnUntraced(function*(text: string) {
    const wire = yield* Effect.result(wireObjectOf(text))
    if (Result.isFailure(wire)) return yield* refuse(wire.failure)
    if (Messages.isAcknowledgement(wire.success)) return
    const name = Messages.laneOf(wire.success)
    if (Result.isFailure(name)) return yield* refuse(name.failure)
    const event = Messages.readCreate(wire.success, name.success)
    if (Result.isFailure(event)) return yield* refuse(event.failure, name.success)
    const known = lanes.get(name.success)
    if (known === undefined && name.success !== undefined && lanes.size - (lanes.has(undefined) ? 1 : 0) >= mostStreams) {
      return yield* refuse(Messages.tooManyStreams(mostStreams), name.success)
    }
    if (requests === mostRequests || (requests > 0 && size + text.length > limits.bodyBytes)) {
      return yield* refuse(Messages.tooManyWaiting, name.success)
    }
    const lane = known ?? []
    lanes.set(name.success, lane)
    requests++
    size += text.length
    if (lane.push({ event: event.success, size: text.length }) === 1) yield* FiberSet.run(running, work(lane))
  })

  yield* Effect.forkScoped(watchReader(connection))
  yield* draining.begun.pipe(
    Effect.timeoutOrElse({
      duration: limits.socketMs,
      orElse: () =>
        Effect.sync(() => {
          peer.retired = true
        })
    }),
    Effect.andThen(FiberSet.awaitEmpty(running)),
    Effect.andThen(Effect.suspend(() => {
      if (peer.retired) connection.send([Messages.errorMessage(Messages.connectionTooOld, undefined, record.id)])
      return connection.close(1001, peer.retired ? "as old as a connection may be" : "the server is shutting down")
    })),
    Effect.andThen(Effect.sleep(closeMs)),
    Effect.andThen(Effect.sync(() => net.destroy())),
    Effect.forkScoped
  )
  while (true) {
    const frames = yield* Effect.tapError(pull, () =>
      Effect.sync(() => {
        peer.gone = true
      }))
    for (const frame of frames) {
      if (typeof frame === "string") yield* receive(frame)
      else {
        peer.gone = true
        return yield* connection.close(1003, "messages are JSON texts")
      }
    }
  }
})

const upgradeRefused = (message: string, headers: Readonly<Record<string, string>>) =>
  Effect.gen(function*() {
    const record = yield* RequestRecord
    record.outcome = "refused"
    record.error = "WebSocketUnsupported"
    const body: ErrorBody = { error: { message, type: "invalid_request_error", param: null, code: "websocket_unsupported" } }
    return HttpServerResponse.jsonUnsafe(body, { status: 426, headers })
  })

const otherProtocol = upgradeRefused("GET /v1/responses upgrades to version 13 of the WebSocket protocol only.", {
  upgrade: "websocket",
  "sec-websocket-version": "13"
})

/** Sends clients to POST, at once. */
const turnedOff = upgradeRefused(
  "Responses over WebSocket are turned off; the server's --websocket turns them on. POST /v1/responses with \"stream\": true does the same.",
  { upgrade: "HTTP/1.1" }
)

/** What a connection that failed is noted as: the client's doing, unless it just went. */
const noteEnd = (error: SocketError) =>
  Effect.map(RequestRecord, (record) => {
    if (error.reason._tag !== "SocketReadError") return
    record.outcome = "refused"
    record.error = "WebSocketProtocol"
  })

/** `GET /v1/responses`: a WebSocket that takes `response.create` messages. */
export const responsesSocket = Effect.gen(function*() {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { headers } = request
  const upgrade = headers["upgrade"]
  if (upgrade === undefined) {
    return yield* new RequestRefused({
      reason: "WrongMethod",
      message: "Responses are not listed; POST creates one.",
      allow: ["POST"]
    })
  }
  if (!(yield* Settings).websocket) return yield* turnedOff
  if (upgrade.toLowerCase() !== "websocket" || headers["sec-websocket-version"] !== "13") return yield* otherProtocol
  if (!/^[+/\dA-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "")) {
    return yield* new InvalidRequest({ message: "sec-websocket-key: Expected 16 bytes in base64", field: "sec-websocket-key" })
  }
  const socket = yield* Effect.result(request.upgrade)
  if (Result.isFailure(socket)) return yield* otherProtocol
  yield* Effect.scoped(serve(socket.success, request)).pipe(Effect.catch(noteEnd))
  return HttpServerResponse.empty({ status: 101 })
})
