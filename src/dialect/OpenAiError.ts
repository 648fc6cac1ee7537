import type { ErrorBody } from "../../schema/openai/Common.ts"
import type { EngineError, GenerationError, RequestRefused } from "../domain/Errors.ts"
import { type ErrorDialect, waitingMessage, type WireError } from "./WireError.ts"

/** An error in OpenAI's terms. */
export interface Details {
  readonly status: number
  readonly type: "invalid_request_error" | "authentication_error" | "permission_error" | "not_found_error" | "unavailable" | "server_error"
  readonly message: string
  readonly param?: string | null
  readonly code?: string
  readonly headers?: Readonly<Record<string, string>>
}

const retryAfter = (seconds: number) => ({ "retry-after": String(seconds) })

/** Messages of the engine stay inside, except where it names a field of the request: they may hold paths and addresses. */
const engineDetails = (error: EngineError): Details => {
  switch (error.reason) {
    case "Rejected":
      return { status: 400, type: "invalid_request_error", message: error.message, param: error.subject ?? null }
    case "LoadFailed":
      return {
        status: 503,
        type: "unavailable",
        message: "The model could not be loaded.",
        code: "model_unavailable",
        headers: retryAfter(30)
      }
    case "OutOfMemory":
      return { status: 500, type: "server_error", message: "Server error: the engine ran out of memory.", code: "out_of_memory" }
    case "WorkerLost":
      return {
        status: 500,
        type: "server_error",
        message: "Server error: the engine stopped while it worked on this request.",
        code: "engine_lost"
      }
    case "DeadEnd":
      return {
        status: 500,
        type: "server_error",
        message: "Server error: no token of the model could continue within the format that the request asks for.",
        code: "format_dead_end"
      }
    case "Internal":
      return { status: 500, type: "server_error", message: "Server error: the engine failed on this request.", code: "engine_failed" }
  }
}

const refusedStatus = {
  Unauthenticated: [401, "authentication_error", "invalid_api_key"],
  ForeignHost: [403, "permission_error", "foreign_host"],
  ForeignOrigin: [403, "permission_error", "foreign_origin"],
  UnknownRoute: [404, "not_found_error", "unknown_route"],
  WrongMethod: [405, "invalid_request_error", "method_not_allowed"],
  WrongMediaType: [415, "invalid_request_error", "unsupported_media_type"],
  BodyTooLarge: [413, "invalid_request_error", "body_too_large"],
  HeadersTooLarge: [431, "invalid_request_error", "headers_too_large"],
  RequestTimeout: [408, "invalid_request_error", "request_timeout"],
  Malformed: [400, "invalid_request_error", "malformed_request"],
  Draining: [503, "unavailable", "draining"],
  Defect: [500, "server_error", "internal_error"]
} as const satisfies Record<RequestRefused["reason"], readonly [number, Details["type"], string]>

const refusedDetails = (error: RequestRefused): Details => {
  const [status, type, code] = refusedStatus[error.reason]
  const headers: Record<string, string> = {}
  if (error.reason === "WrongMethod") headers["allow"] = (error.allow ?? []).join(", ")
  if (error.reason === "Unauthenticated") headers["www-authenticate"] = "Bearer"
  if (error.reason === "Draining") headers["retry-after"] = "5"
  return { status, type, code, message: error.message, headers }
}

export const details = (error: GenerationError | RequestRefused): Details => {
  switch (error._tag) {
    case "RequestRefused":
      return refusedDetails(error)
    case "InvalidRequest":
      return { status: 400, type: "invalid_request_error", message: error.message, param: error.field }
    case "UnsupportedFeature":
      return { status: 400, type: "invalid_request_error", message: error.message, param: error.field, code: "unsupported_parameter" }
    case "ContextTooLong":
      return {
        status: 400,
        type: "invalid_request_error",
        message: `This model's maximum context length is ${error.contextLength} tokens. However, your ${
          error.field ?? "messages"
        } resulted in ${error.promptTokens} tokens. Please reduce the length of the ${error.field ?? "messages"}.`,
        param: error.field ?? "messages",
        code: "context_length_exceeded"
      }
    case "ModelNotFound":
      return {
        status: 404,
        type: "not_found_error",
        message: "This server does not serve the model that was asked for; GET /v1/models shows the one it does.",
        param: "model",
        code: "model_not_found"
      }
    case "Overloaded":
      return {
        status: 429,
        type: "unavailable",
        message: waitingMessage(error),
        code: error.scope === "tenant" ? "tenant_queue_full" : "queue_full",
        headers: retryAfter(error.retryAfter)
      }
    case "ModelLoading":
      return {
        status: 503,
        type: "unavailable",
        message: "The model is still loading.",
        code: "model_loading",
        headers: retryAfter(error.retryAfter)
      }
    case "TemplateError":
      return { status: 400, type: "invalid_request_error", message: error.message, param: "messages", code: "template_error" }
    case "EngineError":
      return engineDetails(error)
  }
}

/** The error as a body; `requestId` is the id of the response that it ends. */
export const errorBody = (error: Details, requestId?: string): ErrorBody => ({
  error: {
    message: error.message,
    type: error.type,
    param: error.param ?? null,
    code: error.code ?? null,
    ...(requestId === undefined ? {} : { request_id: requestId })
  }
})

/** What went wrong, in a sentence. */
export const errorMessage = (error: GenerationError | RequestRefused): string => details(error).message

/** The error as an HTTP answer. */
export const encode = (error: GenerationError | RequestRefused): WireError => {
  const wire = details(error)
  return { status: wire.status, headers: wire.headers ?? {}, body: JSON.stringify(errorBody(wire)) }
}

/** The error as the event that ends a stream; `requestId` is the response's id. */
export const frame = (error: GenerationError | RequestRefused, requestId: string): string =>
  `data: ${JSON.stringify(errorBody(details(error), requestId))}\n\n`

/** OpenAI's error shape. */
export const dialect: ErrorDialect = { encode }
