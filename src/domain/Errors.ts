import { Schema } from "effect"

/** The engine cannot serve: see `reason`. */
export class EngineError extends Schema.TaggedError<EngineError>()("EngineError", {
  reason: Schema.Literals(["WorkerLost", "LoadFailed", "OutOfMemory", "Rejected", "DeadEnd", "Internal"]),
  message: Schema.String,
  /** The native core's error kind, for example "truncated", where it is known. */
  code: Schema.optionalKey(Schema.String),
  /** The metadata key, tensor or field to blame, where there is one. */
  subject: Schema.optionalKey(Schema.String)
}) {}

/** The model file cannot be used; `message` is one line for a person, `subject` the key or tensor to blame. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", {
  reason: Schema.Literals(["NotFound", "Truncated", "Invalid", "Unsupported", "Inconsistent"]),
  message: Schema.String,
  subject: Schema.optionalKey(Schema.String)
}) {}

/** A request that is wrong in one field; `field` is its path in the request body, for example "messages.0.content". */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  message: Schema.String,
  field: Schema.NullOr(Schema.String)
}) {}

/** A field asks for something this server does not do. */
export class UnsupportedFeature extends Schema.TaggedError<UnsupportedFeature>()("UnsupportedFeature", {
  message: Schema.String,
  field: Schema.String
}) {}

/** Prompt and output do not fit the context; nothing was truncated. */
export class ContextTooLong extends Schema.TaggedError<ContextTooLong>()("ContextTooLong", {
  promptTokens: Schema.Int,
  contextLength: Schema.Int,
  /** Where the prompt stands in the request, where it is no conversation. */
  field: Schema.optionalKey(Schema.String)
}) {}

/** The model id is not the one this server runs. */
export class ModelNotFound extends Schema.TaggedError<ModelNotFound>()("ModelNotFound", { model: Schema.String }) {}

/** Too many requests wait; come back after `retryAfter` seconds. */
export class Overloaded extends Schema.TaggedError<Overloaded>()("Overloaded", {
  scope: Schema.Literals(["tenant", "server"]),
  /** What they wait for; default a slot. */
  waitingFor: Schema.optionalKey(Schema.Literals(["slot", "grammar"])),
  retryAfter: Schema.Int,
  /** The same in milliseconds, not rounded up to seconds. */
  retryAfterMs: Schema.optionalKey(Schema.Int)
}) {}

/** The model is still loading; come back after `retryAfter` seconds. */
export class ModelLoading extends Schema.TaggedError<ModelLoading>()("ModelLoading", { retryAfter: Schema.Int }) {}

/** A request that never reached a route's own logic; `allow` are the methods that the path does take. */
export class RequestRefused extends Schema.TaggedError<RequestRefused>()("RequestRefused", {
  reason: Schema.Literals([
    "Unauthenticated",
    "ForeignHost",
    "ForeignOrigin",
    "UnknownRoute",
    "WrongMethod",
    "WrongMediaType",
    "BodyTooLarge",
    "HeadersTooLarge",
    "RequestTimeout",
    "Malformed",
    "Draining",
    "Defect"
  ]),
  message: Schema.String,
  allow: Schema.optionalKey(Schema.Array(Schema.String))
}) {}

/** The chat template refused or failed on this conversation. */
export class TemplateError extends Schema.TaggedError<TemplateError>()("TemplateError", { message: Schema.String }) {}

export type GenerationError =
  | EngineError
  | InvalidRequest
  | UnsupportedFeature
  | ContextTooLong
  | ModelNotFound
  | Overloaded
  | ModelLoading
  | TemplateError
