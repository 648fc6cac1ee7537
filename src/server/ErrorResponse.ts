import { HttpServerResponse } from "effect/http"
import { dialect as anthropic } from "../dialect/AnthropicError.ts"
import { dialect as openAi } from "../dialect/OpenAiError.ts"
import { type ErrorDialect, preciseRetry } from "../dialect/WireError.ts"
import type { GenerationError, RequestRefused } from "../domain/Errors.ts"

/** Where a dialect's own routes begin; the first match counts. */
const dialects: ReadonlyArray<{ readonly prefix: string; readonly dialect: ErrorDialect }> = [
  { prefix: "/v1/messages", dialect: anthropic },
  { prefix: "/v1/", dialect: openAi }
]

/** The dialect that a path's clients read errors in. */
export const errorDialect = (path: string): ErrorDialect => dialects.find(({ prefix }) => path.startsWith(prefix))?.dialect ?? openAi

export const errorResponse = (
  dialect: ErrorDialect,
  error: GenerationError | RequestRefused,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const wire = dialect.encode(error, requestId)
  return HttpServerResponse.text(wire.body, {
    status: wire.status,
    headers: { ...wire.headers, ...preciseRetry(error) },
    contentType: "application/json"
  })
}
