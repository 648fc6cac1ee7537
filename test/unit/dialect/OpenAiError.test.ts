import { assert, describe, it } from "@effect/vitest"
import { encode } from "../../../src/dialect/OpenAiError.ts"
import {
  ContextTooLong,
  EngineError,
  type GenerationError,
  InvalidRequest,
  ModelLoading,
  ModelNotFound,
  Overloaded,
  RequestRefused,
  TemplateError,
  UnsupportedFeature
} from "../../../src/domain/Errors.ts"

const secret = "at 0x7ffe12 in /home/someone/model.gguf"
const engine = (reason: EngineError["reason"]) => new EngineError({ reason, message: secret, subject: "tensor" })
const refused = (reason: RequestRefused["reason"]) => new RequestRefused({ reason, message: "m", allow: ["GET", "HEAD"] })

/** Error, status, type, code, and the header that must be there. */
const cases: ReadonlyArray<readonly [error: GenerationError | RequestRefused, number, string, string | null, string?]> = [
  [new InvalidRequest({ message: "m", field: "a.b" }), 400, "invalid_request_error", null],
  [new UnsupportedFeature({ message: "m", field: "n" }), 400, "invalid_request_error", "unsupported_parameter"],
  [new ContextTooLong({ promptTokens: 9, contextLength: 8 }), 400, "invalid_request_error", "context_length_exceeded"],
  [new TemplateError({ message: "m" }), 400, "invalid_request_error", "template_error"],
  [new ModelNotFound({ model: "x" }), 404, "not_found_error", "model_not_found"],
  [new Overloaded({ scope: "tenant", retryAfter: 3 }), 429, "unavailable", "tenant_queue_full", "retry-after"],
  [new Overloaded({ scope: "server", waitingFor: "grammar", retryAfter: 3 }), 429, "unavailable", "queue_full", "retry-after"],
  [new Overloaded({ scope: "server", retryAfter: 3 }), 429, "unavailable", "queue_full", "retry-after"],
  [new ModelLoading({ retryAfter: 2 }), 503, "unavailable", "model_loading", "retry-after"],
  [engine("LoadFailed"), 503, "unavailable", "model_unavailable", "retry-after"],
  [engine("WorkerLost"), 500, "server_error", "engine_lost"],
  [engine("OutOfMemory"), 500, "server_error", "out_of_memory"],
  [engine("Internal"), 500, "server_error", "engine_failed"],
  [refused("Unauthenticated"), 401, "authentication_error", "invalid_api_key", "www-authenticate"],
  [refused("ForeignHost"), 403, "permission_error", "foreign_host"],
  [refused("ForeignOrigin"), 403, "permission_error", "foreign_origin"],
  [refused("UnknownRoute"), 404, "not_found_error", "unknown_route"],
  [refused("WrongMethod"), 405, "invalid_request_error", "method_not_allowed", "allow"],
  [refused("BodyTooLarge"), 413, "invalid_request_error", "body_too_large"],
  [refused("WrongMediaType"), 415, "invalid_request_error", "unsupported_media_type"],
  [refused("Draining"), 503, "unavailable", "draining", "retry-after"],
  [refused("Defect"), 500, "server_error", "internal_error"]
]

describe("OpenAI errors", () => {
  it("have the status, type, code and headers of their kind, and nothing of the inside", () => {
    for (const [error, status, type, code, header] of cases) {
      const wire = encode(error)
      assert.strictEqual(wire.status, status, code ?? "")
      const { error: body } = JSON.parse(wire.body)
      assert.strictEqual(body.type, type)
      assert.strictEqual(body.code, code)
      assert.isString(body.message)
      assert.isTrue(body.param === null || typeof body.param === "string")
      if (header !== undefined) assert.isNotEmpty(wire.headers[header], header)
      assert.notInclude(wire.body, secret)
    }
  })

  it("name the field that the engine rejects", () => {
    const wire = encode(new EngineError({ reason: "Rejected", message: "top_k: too large", subject: "top_k" }))
    assert.strictEqual(wire.status, 400)
    assert.deepInclude(JSON.parse(wire.body).error, { param: "top_k", message: "top_k: too large" })
  })
})
