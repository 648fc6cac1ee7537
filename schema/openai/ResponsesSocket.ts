import { Schema } from "effect"
import { ErrorBody } from "./Common.ts"
import { ResponseStreamEvent } from "./Responses.ts"

const streamId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.-]{1,256}$/u))

/** What a message of a client has beside the fields of a Responses request. */
export const ResponseCreate = Schema.Struct({
  type: Schema.Literal("response.create"),
  stream_id: Schema.optionalKey(
    streamId.annotate({
      expected: "1 to 256 letters, digits, underscores, hyphens and periods",
      description: "A lane: its requests are answered in their order, those of other lanes at the same time. Its events repeat it."
    })
  ),
  generate: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "false: check and prepare the prompt without an answer; the response's id can be a previous_response_id.",
      default: true
    })
  )
}).annotate({
  identifier: "ResponseCreate",
  description:
    "A message of a client on a WebSocket connection to /v1/responses: these fields, and those of ResponsesRequest. stream is implied, and background is not supported."
})

/** A message of the server: an event of a response, or what a request was refused with. */
export const SocketEvent = Schema.Union([
  Schema.Struct({
    ...ResponseStreamEvent.fields,
    stream_id: Schema.optionalKey(Schema.String.annotate({ description: "The lane of the request." })),
    headers: Schema.optionalKey(
      Schema.Record(Schema.String, Schema.String).annotate({
        description: "With response.created: what the headers of an HTTP answer tell, x-request-id and x-mashbox-ignored."
      })
    )
  }),
  Schema.Struct({
    type: Schema.Literal("error"),
    status: Schema.Int.annotate({ description: "The HTTP status that POST would have answered with." }),
    stream_id: Schema.optionalKey(Schema.String),
    error: Schema.Struct({
      ...ErrorBody.fields.error.fields,
      headers: Schema.Record(Schema.String, Schema.String).annotate({ description: "x-request-id, and Retry-After where it helps." })
    }),
    headers: Schema.Record(Schema.String, Schema.String)
  })
]).annotate({
  identifier: "ResponsesSocketEvent",
  description: "One message of a WebSocket connection."
})
export type SocketEvent = typeof SocketEvent.Type
