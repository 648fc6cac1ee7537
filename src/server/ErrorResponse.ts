import { HttpServerResponse } from "effect/http"
import { dialect as openAi } from "../dialect/OpenAiError.ts"
import type { ErrorDialect } from "../dialect/WireError.ts"
import type { GenerationError, RequestRefused } from "../domain/Errors.ts"

/** The dialect that a path's clients read errors in. */
export const errorDialect = (_path: string): ErrorDialect => openAi

export const errorResponse = (dialect: ErrorDialect, error: GenerationError | RequestRefused): HttpServerResponse.HttpServerResponse => {
  const wire = dialect.encode(error)
  return HttpServerResponse.text(wire.body, { status: wire.status, headers: wire.headers, contentType: "application/json" })
}
