import { type Cause, Effect, Result, type Scope } from "effect"
import { Headers } from "effect/http"
import { Auth } from "../auth/Auth.ts"
import type { StoredConversations } from "../dialect/OpenAiResponses.ts"
import * as Messages from "../dialect/OpenAiResponsesSocket.ts"
import type { ResponseStream } from "../dialect/OpenAiResponsesStream.ts"
import { type GenerationError, RequestRefused } from "../domain/Errors.ts"
import type { GenerationRequest } from "../domain/GenerationRequest.ts"
import { ServedModel } from "../domain/ServedModel.ts"
import { Generation, type OutputSink } from "../generation/Generation.ts"
import { Draining } from "./Draining.ts"
import { streamTo } from "./Generating.ts"
import * as RequestLog from "./RequestLog.ts"
import { requestId, RequestRecord, type RequestRecordValue } from "./RequestRecord.ts"
import { decode, responses, storedBy, storedResponse } from "./ResponseCreation.ts"
import { ConnectionResponses, ResponseStore } from "./ResponseStore.ts"
import { MessageOutput, type SocketConnection } from "./SocketConnection.ts"

/** What the requests of one connection share. */
export interface Peer {
  readonly connection: SocketConnection
  /** Of the request that opened the connection. */
  readonly record: RequestRecordValue
  readonly headers: Headers.Headers
  /** The newest response of each lane where it is not stored otherwise. */
  readonly latest: Map<string | undefined, { readonly tenant: string; readonly id: string }>
  /** Whether the client has ended the connection. */
  gone: boolean
  /** Whether the connection is too old to take more requests. */
  retired: boolean
}

const refusalOf = (cause: Cause.Cause<Messages.SocketError>): Messages.SocketError | undefined => {
  const reason = cause.reasons.find((reason) => reason._tag !== "Interrupt")
  if (reason === undefined) return undefined
  return reason._tag === "Fail"
    ? reason.error
    : new RequestRefused({ reason: "Defect", message: "Server error: the request failed inside the server." })
}

const interrupted = ({ connection, gone }: Peer): RequestRecordValue["outcome"] => {
  if (connection.slow) return "slow_reader"
  return gone || connection.closed ? "client_left" : "server_closed"
}

/**
 * Answers one message of a client, as a request of its own, whose trace `headers` name. A failure is answered with an error message; the
 * connection goes on.
 */
export const recorded = <R>(
  peer: Peer,
  lane: string | undefined,
  answer: (output: MessageOutput) => Effect.Effect<void, Messages.SocketError, R>,
  headers: Headers.Headers = peer.headers
): Effect.Effect<void, never, Exclude<R, Scope.Scope> | ServedModel> =>
  Effect.scoped(Effect.gen(function*() {
    const { id: connection, method, route, session, tenant } = peer.record
    const record: RequestRecordValue = {
      id: requestId(),
      method,
      route,
      tenant,
      status: 0,
      outcome: "ok",
      connection,
      ...(session === undefined ? {} : { session })
    }
    const output = new MessageOutput(peer.connection)
    const around = yield* RequestLog.open(record, headers, (yield* ServedModel).id)
    yield* around(answer(output)).pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          if (record.outcome === "ok") record.outcome = interrupted(peer)
        })
      ),
      Effect.catchCause((cause) => {
        const refused = refusalOf(cause)
        if (refused === undefined) return Effect.interrupt
        const { error, status } = Messages.refusalStatus(refused)
        record.status = status
        record.error ??= error
        if (record.outcome === "ok") record.outcome = error === "Defect" ? "failed" : "refused"
        peer.connection.send([Messages.errorMessage(refused, lane, record.id)])
        return error === "Defect" ? Effect.logError("defect", { request: record.id }, cause) : Effect.void
      }),
      Effect.ensuring(Effect.sync(() => {
        if (output.written) record.status = 200
      }))
    )
  }))

const discard: OutputSink = { push: () => {}, reset: () => true }

/** Checks and encodes the prompt, and has its state computed where the next request can go on from that. */
const prepare = Effect.fnUntraced(function*(output: MessageOutput, request: GenerationRequest, response: ResponseStream) {
  const { choices: [choice], promptTokens } = yield* (yield* Generation).accept({ ...request, maxTokens: 1 })
  const record = yield* RequestRecord
  record.promptTokens = promptTokens
  const unused = { promptTokens, cachedTokens: 0, completionTokens: 0, queueMs: 0, promptMs: 0, generationMs: 0 }
  const { prefixCache } = yield* ServedModel
  const usage = prefixCache && choice !== undefined ? { ...(yield* choice(discard)).usage, completionTokens: 0 } : unused
  output.write(response.start() + response.prepared(usage))
})

/** Answers a `response.create`. */
export const create = (peer: Peer, event: Messages.ResponseCreate) => {
  const { headers } = peer
  return recorded(
    peer,
    event.lane,
    generated(peer, event),
    event.traceparent === undefined ? headers : Headers.set(headers, "traceparent", event.traceparent)
  )
}

const generated = (peer: Peer, { generate, lane, wire }: Messages.ResponseCreate) =>
(
  output: MessageOutput
): Effect.Effect<
  void,
  Messages.SocketError | GenerationError,
  Auth | ConnectionResponses | Draining | Generation | ResponseStore | Scope.Scope | ServedModel
> =>
  Effect.gen(function*() {
    const record = yield* RequestRecord
    // Keys may have changed since the connection was opened.
    const tenant = yield* (yield* Auth).authenticate({ authorization: peer.headers["authorization"], apiKey: peer.headers["x-api-key"] })
    record.tenant = tenant
    if (peer.retired) return yield* Effect.fail(Messages.connectionTooOld)
    if ((yield* Draining).now()) return yield* new RequestRefused({ reason: "Draining", message: "The server is shutting down." })
    const store = yield* ResponseStore
    const unstored = yield* ConnectionResponses
    const kept = storedBy(store, tenant)
    const own = storedBy(unstored, tenant)
    const isOwn = (id: string) => [...peer.latest.values()].some((latest) => latest.id === id)
    const known: StoredConversations = {
      items: (id) => (isOwn(id) ? own.items(id) : undefined) ?? kept.items(id),
      item: (id) => own.item(id) ?? kept.item(id)
    }
    const decoded = yield* decode(wire, known)
    if (Result.isFailure(decoded)) return yield* Effect.fail(Messages.previousNotFound)
    const { echo, ignored, items, request } = decoded.success
    const events = yield* responses(decoded.success)
    const framing = Messages.messages(lane, {
      "x-request-id": record.id,
      ...(ignored.length === 0 ? {} : { "x-mashbox-ignored": ignored.join(", ") })
    })
    const encoder = () =>
      events(framing, (response) => {
        const ended = storedResponse(items, response, JSON.stringify(response))
        forget(peer, unstored, lane)
        if (echo.store) store.put(tenant, ended)
        else {
          unstored.put(tenant, ended)
          peer.latest.set(lane, { tenant, id: ended.id })
        }
      })
    return yield* generate ? streamTo(output, { request, encoder }) : prepare(output, request, encoder())
  })

/** Forgets the newest response of a lane. */
export const forget = (peer: Peer, unstored: ConnectionResponses["Service"], lane: string | undefined): void => {
  const latest = peer.latest.get(lane)
  if (latest === undefined) return
  peer.latest.delete(lane)
  unstored.delete(latest.tenant, latest.id)
}
