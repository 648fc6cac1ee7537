import { Schema } from "effect"

/** Anthropic's error shape. */
export const AnthropicError = Schema.Struct({
  type: Schema.Literal("error"),
  error: Schema.Struct({
    type: Schema.Literals([
      "invalid_request_error",
      "authentication_error",
      "permission_error",
      "not_found_error",
      "request_too_large",
      "rate_limit_error",
      "api_error",
      "overloaded_error"
    ]),
    message: Schema.String.annotate({ description: "What went wrong; it begins with the path of the field to blame, where there is one." }),
    details: Schema.optionalKey(
      Schema.Struct({
        error_code: Schema.Literal("thread_unsupported_request"),
        unsupported: Schema.Array(Schema.String)
      }).annotate({ description: "Message threads are not supported: send the whole conversation without thread." })
    )
  }),
  request_id: Schema.String.annotate({ description: "As in the x-request-id header; in a stream's error event the message id." })
}).annotate({ identifier: "AnthropicError", description: "Anthropic error shape (/v1/messages and /v1/messages/count_tokens)." })
export type AnthropicError = typeof AnthropicError.Type
