import type { AnthropicError } from "../../schema/anthropic/Error.ts"
import type { EngineError, GenerationError, RequestRefused } from "../domain/Errors.ts"
import { type ErrorDialect, waitingMessage } from "./WireError.ts"

interface Details {
  readonly status: number
  readonly type: AnthropicError["error"]["type"]
  readonly message: string
  readonly details?: AnthropicError["error"]["details"]
  readonly headers?: Readonly<Record<string, string>>
}

/** 529 is Anthropic's status for a server that is busy as a whole. */
const overloaded = (message: string, retryAfter: number): Details => ({
  status: 529,
  type: "overloaded_error",
  message,
  headers: { "retry-after": String(retryAfter), "x-should-retry": "true" }
})

/** Messages of the engine stay inside, except where it names a field of the request: they may hold paths and addresses. */
const engineDetails = (error: EngineError): Details => {
  switch (error.reason) {
    case "Rejected":
      return { status: 400, type: "invalid_request_error", message: error.message }
    case "LoadFailed":
      return overloaded("The model could not be loaded.", 30)
    case "OutOfMemory":
      return { status: 500, type: "api_error", message: "Server error: the engine ran out of memory." }
    case "WorkerLost":
      return { status: 500, type: "api_error", message: "Server error: the engine stopped while it worked on this request." }
    case "DeadEnd":
      return {
        status: 500,
        type: "api_error",
        message: "Server error: no token of the model could continue within the format that the request asks for."
      }
    case "Internal":
      return { status: 500, type: "api_error", message: "Server error: the engine failed on this request." }
  }
}

const refusedStatus = {
  Unauthenticated: [401, "authentication_error"],
  ForeignHost: [403, "permission_error"],
  ForeignOrigin: [403, "permission_error"],
  UnknownRoute: [404, "not_found_error"],
  WrongMethod: [405, "invalid_request_error"],
  WrongMediaType: [415, "invalid_request_error"],
  BodyTooLarge: [413, "request_too_large"],
  HeadersTooLarge: [431, "invalid_request_error"],
  RequestTimeout: [408, "invalid_request_error"],
  Malformed: [400, "invalid_request_error"],
  Defect: [500, "api_error"]
} as const satisfies Record<Exclude<RequestRefused["reason"], "Draining">, readonly [number, Details["type"]]>

const refusedDetails = (error: RequestRefused): Details => {
  if (error.reason === "Draining") return overloaded(error.message, 5)
  const [status, type] = refusedStatus[error.reason]
  const headers: Record<string, string> = {}
  if (error.reason === "WrongMethod") headers["allow"] = (error.allow ?? []).join(", ")
  if (error.reason === "Unauthenticated") headers["www-authenticate"] = "Bearer"
  return { status, type, message: error.message, headers }
}

const details = (error: GenerationError | RequestRefused): Details => {
  switch (error._tag) {
    case "RequestRefused":
      return refusedDetails(error)
    case "InvalidRequest":
    case "TemplateError":
      return { status: 400, type: "invalid_request_error", message: error.message }
    case "UnsupportedFeature":
      return {
        status: 400,
        type: "invalid_request_error",
        message: error.message,
        ...(error.field === "thread" ? { details: { error_code: "thread_unsupported_request", unsupported: ["thread"] } } : {})
      }
    case "ContextTooLong":
      return {
        status: 400,
        type: "invalid_request_error",
        // Clients read both numbers; the context also holds at least one new token.
        message: `prompt is too long: ${error.promptTokens} tokens > ${error.contextLength - 1} maximum`
      }
    case "ModelNotFound":
      return {
        status: 404,
        type: "not_found_error",
        message: "model: this server does not serve the model that was asked for; GET /v1/models shows the one it does."
      }
    case "Overloaded":
      return error.scope === "server"
        ? overloaded(waitingMessage(error), error.retryAfter)
        : {
          status: 429,
          type: "rate_limit_error",
          message: waitingMessage(error),
          headers: { "retry-after": String(error.retryAfter) }
        }
    case "ModelLoading":
      return overloaded("The model is still loading.", error.retryAfter)
    case "EngineError":
      return engineDetails(error)
  }
}

const body = ({ details, message, type }: Details, requestId: string): AnthropicError => ({
  type: "error",
  error: { type, message, ...(details === undefined ? {} : { details }) },
  request_id: requestId
})

/** The error as the event that ends a stream; `requestId` is the message's id. */
export const frame = (error: GenerationError | RequestRefused, requestId: string): string =>
  `event: error\ndata: ${JSON.stringify(body(details(error), requestId))}\n\n`

/** Anthropic's error shape. */
export const dialect: ErrorDialect = {
  encode: (error, requestId) => {
    const wire = details(error)
    return {
      status: wire.status,
      headers: { ...wire.headers, "request-id": requestId },
      body: JSON.stringify(body(wire, requestId))
    }
  }
}
