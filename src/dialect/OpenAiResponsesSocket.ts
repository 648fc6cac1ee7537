import { Result } from "effect"
import * as Wire from "../../schema/openai/ResponsesSocket.ts"
import { type GenerationError, InvalidRequest, type RequestRefused, UnsupportedFeature } from "../domain/Errors.ts"
import type { EventFraming } from "./EventFraming.ts"
import { type Details, details, errorBody } from "./OpenAiError.ts"
import { preciseRetry } from "./WireError.ts"
import { decoder, isRecord, type WireObject } from "./WireRequest.ts"

/** A client's `response.create`. */
export interface ResponseCreate {
  /** Its `stream_id`: requests of one lane are answered one after the other, and lanes at once. undefined: the lane without a name. */
  readonly lane: string | undefined
  /** false: only make ready for a request that goes on from this one. */
  readonly generate: boolean
  /** What is left: the body of `POST /v1/responses`. */
  readonly wire: WireObject
  /** W3C trace context of this request, which is not that of the connection. */
  readonly traceparent: string | undefined
}

/** A refusal that only a socket has. */
export interface SocketRefusal {
  readonly _tag: "SocketRefusal"
  readonly details: Details & { readonly code: string }
}

export type SocketError = GenerationError | RequestRefused | SocketRefusal

const refusal = (details: Omit<SocketRefusal["details"], "type">): SocketRefusal => ({
  _tag: "SocketRefusal",
  details: { ...details, type: details.status === 429 ? "unavailable" : "invalid_request_error" }
})

export const invalidStreamId: SocketRefusal = refusal({
  status: 400,
  code: "invalid_stream_id",
  message: "stream_id: Expected 1 to 256 letters, digits, underscores, hyphens and periods",
  param: "stream_id"
})

export const tooManyStreams = (most: number): SocketRefusal =>
  refusal({
    status: 400,
    code: "websocket_stream_limit_reached",
    message: `stream_id: this connection has its ${most} streams already; use one of them or another connection`,
    param: "stream_id"
  })

export const tooManyWaiting: SocketRefusal = refusal({
  status: 429,
  code: "websocket_queue_full",
  message: "Too many requests of this connection are waiting; wait for one to be answered.",
  headers: { "retry-after": "1" }
})

export const connectionTooOld: SocketRefusal = refusal({
  status: 400,
  code: "websocket_connection_limit_reached",
  message: "This connection is as old as one may be; go on with a new one."
})

export const previousNotFound: SocketRefusal = refusal({
  status: 400,
  code: "previous_response_not_found",
  message: "previous_response_id: no such response is stored, nor the latest of a stream of this connection; send the whole conversation.",
  param: "previous_response_id"
})

const decodeEnvelope = decoder(Wire.ResponseCreate)

/** Fields that a message has beside those of a request. */
const envelopeFields: ReadonlySet<string> = new Set(Object.keys(Wire.ResponseCreate.fields))

/** The lane that a message names, where it names one as it should. */
export const laneOf = ({ fields }: WireObject): Result.Result<string | undefined, SocketRefusal> => {
  const lane = fields["stream_id"]
  if (lane === undefined) return Result.succeed(undefined)
  return typeof lane === "string" && /^[\w.-]{1,256}$/.test(lane) ? Result.succeed(lane) : Result.fail(invalidStreamId)
}

/** Codex puts the headers of a request that has none into its metadata. */
const traceparentOf = ({ fields }: WireObject): string | undefined => {
  const metadata = fields["client_metadata"]
  const traceparent = isRecord(metadata) ? metadata["ws_request_header_traceparent"] : undefined
  return typeof traceparent === "string" ? traceparent : undefined
}

/** Whether a message only says that a response was dealt with: Codex sends it, and nothing answers it. */
export const isAcknowledgement = ({ fields }: WireObject): boolean => fields["type"] === "response.processed"

/** A message of a client, whose lane `laneOf` has found good. */
export const readCreate = (
  wire: WireObject,
  lane: string | undefined
): Result.Result<ResponseCreate, InvalidRequest | UnsupportedFeature> => {
  const { type } = wire.fields
  if (type === "response.steer") {
    return Result.fail(
      new UnsupportedFeature({ message: "type: steering a response that runs is not supported by this version", field: "type" })
    )
  }
  if (type !== "response.create") return Result.fail(new InvalidRequest({ message: `type: Expected "response.create"`, field: "type" }))
  return Result.map(decodeEnvelope(wire), ({ generate }) => ({
    lane,
    generate: generate ?? true,
    traceparent: traceparentOf(wire),
    wire: { fields: Object.fromEntries(Object.entries(wire.fields).filter(([name]) => !envelopeFields.has(name))) }
  }))
}

const stream = (lane: string | undefined) => lane === undefined ? "" : `,"stream_id":${JSON.stringify(lane)}`

/** Messages of one event each. `headers` are what an HTTP answer would have had; `response.created` tells them. */
export const messages = (lane: string | undefined, headers: Readonly<Record<string, string>>): EventFraming => {
  const told = `${stream(lane)},"headers":${JSON.stringify(headers)}`
  return {
    open: (type) => `{"type":"${type}"${type === "response.created" ? told : stream(lane)}`,
    close: "\n"
  }
}

/** The texts of messages that stand one after the other as `messages` frames them. */
export const splitMessages = (frames: string): ReadonlyArray<string> => frames.slice(0, -1).split("\n")

/** What a refused request is answered with: one message. */
export const errorMessage = (error: SocketError, lane: string | undefined, requestId: string): string => {
  const refused = error._tag === "SocketRefusal" ? error.details : details(error)
  const precise = error._tag === "SocketRefusal" ? {} : preciseRetry(error)
  const headers = JSON.stringify({ ...refused.headers, ...precise, "x-request-id": requestId })
  const fields = JSON.stringify(errorBody(refused).error).slice(0, -1)
  // OpenAI's SDK looks for the headers in the error, Codex beside it.
  return `{"type":"error","status":${refused.status}${stream(lane)},"error":${fields},"headers":${headers}},"headers":${headers}}`
}

/** HTTP status and kind of a refusal, as the log has them. */
export const refusalStatus = (error: SocketError): { readonly status: number; readonly error: string } =>
  error._tag === "SocketRefusal"
    ? { status: error.details.status, error: error.details.code }
    : { status: details(error).status, error: error._tag === "RequestRefused" ? error.reason : error._tag }
