import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { AnthropicError } from "../../../schema/anthropic/Error.ts"
import { dialect, frame } from "../../../src/dialect/AnthropicError.ts"
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

const read = Schema.decodeSync(Schema.fromJsonString(AnthropicError))

const refused = (reason: RequestRefused["reason"]) => new RequestRefused({ reason, message: "no", allow: ["POST", "HEAD"] })
const engine = (reason: EngineError["reason"]) => new EngineError({ reason, message: "tokens: 0x7f /secret" })

const cases: ReadonlyArray<
  readonly [error: GenerationError | RequestRefused, status: number, type: string, headers: Readonly<Record<string, string>>]
> = [
  [refused("Unauthenticated"), 401, "authentication_error", { "www-authenticate": "Bearer" }],
  [refused("ForeignHost"), 403, "permission_error", {}],
  [refused("ForeignOrigin"), 403, "permission_error", {}],
  [refused("UnknownRoute"), 404, "not_found_error", {}],
  [refused("WrongMethod"), 405, "invalid_request_error", { allow: "POST, HEAD" }],
  [refused("WrongMediaType"), 415, "invalid_request_error", {}],
  [refused("BodyTooLarge"), 413, "request_too_large", {}],
  [refused("HeadersTooLarge"), 431, "invalid_request_error", {}],
  [refused("RequestTimeout"), 408, "invalid_request_error", {}],
  [refused("Malformed"), 400, "invalid_request_error", {}],
  [refused("Draining"), 529, "overloaded_error", { "retry-after": "5", "x-should-retry": "true" }],
  [refused("Defect"), 500, "api_error", {}],
  [new InvalidRequest({ message: "top_k: no", field: "top_k" }), 400, "invalid_request_error", {}],
  [new UnsupportedFeature({ message: "n: no", field: "n" }), 400, "invalid_request_error", {}],
  [new TemplateError({ message: "roles must alternate" }), 400, "invalid_request_error", {}],
  [new ContextTooLong({ promptTokens: 250_000, contextLength: 200_001 }), 400, "invalid_request_error", {}],
  [new ModelNotFound({ model: "x" }), 404, "not_found_error", {}],
  [new Overloaded({ scope: "tenant", retryAfter: 7 }), 429, "rate_limit_error", { "retry-after": "7" }],
  [new Overloaded({ scope: "tenant", waitingFor: "grammar", retryAfter: 2 }), 429, "rate_limit_error", { "retry-after": "2" }],
  [new Overloaded({ scope: "server", retryAfter: 7 }), 529, "overloaded_error", { "retry-after": "7", "x-should-retry": "true" }],
  [new ModelLoading({ retryAfter: 2 }), 529, "overloaded_error", { "retry-after": "2", "x-should-retry": "true" }],
  [engine("Rejected"), 400, "invalid_request_error", {}],
  [engine("LoadFailed"), 529, "overloaded_error", { "retry-after": "30", "x-should-retry": "true" }],
  [engine("OutOfMemory"), 500, "api_error", {}],
  [engine("WorkerLost"), 500, "api_error", {}],
  [engine("Internal"), 500, "api_error", {}]
]

describe("errors in Anthropic's words", () => {
  for (const [error, status, type, headers] of cases) {
    const reason = "reason" in error ? `.${error.reason}` : ""
    it(`${error._tag}${reason} is ${status} ${type}`, () => {
      const wire = dialect.encode(error, "req_1")
      assert.strictEqual(wire.status, status)
      assert.deepStrictEqual(wire.headers, { ...headers, "request-id": "req_1" })
      const body = read(wire.body)
      assert.strictEqual(body.error.type, type)
      assert.strictEqual(body.request_id, "req_1")
      if (status >= 500) assert.notInclude(wire.body, "secret")
      assert.strictEqual(frame(error, "msg_1"), `event: error\ndata: ${wire.body.replace("req_1", "msg_1")}\n\n`)
    })
  }

  it("gives the numbers that clients look for", () => {
    const { body } = dialect.encode(new ContextTooLong({ promptTokens: 250_000, contextLength: 200_001 }), "req_1")
    assert.strictEqual(read(body).error.message, "prompt is too long: 250000 tokens > 200000 maximum")
  })

  it("gives details of threads alone", () => {
    const details = (field: string) => read(dialect.encode(new UnsupportedFeature({ message: "no", field }), "r").body).error.details
    assert.deepStrictEqual(details("thread"), { error_code: "thread_unsupported_request", unsupported: ["thread"] })
    assert.isUndefined(details("tool_choice"))
  })
})
