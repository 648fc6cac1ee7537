import { Cause, Console, Effect, Schema } from "effect"
import { CliError } from "effect/cli"
import { AuthError } from "../auth/Auth.ts"
import { EngineError, ModelError } from "../domain/Errors.ts"
import { SettingsError } from "../Settings.ts"

/** An address that cannot be listened on; `code` is Node's, for example "EADDRINUSE". */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", {
  host: Schema.String,
  port: Schema.Int,
  code: Schema.String
}) {}

const StartError = Schema.Union([SettingsError, ModelError, EngineError, AuthError, ListenError])
type StartError = typeof StartError.Type

const listenAdvice: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there; choose another with --port, or any free one with --port 0",
  EACCES: "ports below 1024 need a privilege; choose another with --port",
  EADDRNOTAVAIL: "this machine has no such address; see --host",
  ENOTFOUND: "no such host; see --host"
}

/** One line that says what is wrong and, where something can be done, what. */
export const describe = (error: StartError): string => {
  switch (error._tag) {
    case "SettingsError":
      return `--${error.setting}: ${error.message}`
    case "ListenError":
      return `cannot listen on ${error.host}:${error.port} (${error.code}): ${listenAdvice[error.code] ?? "see --host and --port"}`
    case "ModelError":
    case "EngineError":
    case "AuthError":
      return error.message
  }
}

/** Says on stderr why a command ended. The command-line parser has reported its own errors already; a stop is no error. */
export const reportFailure = (cause: Cause.Cause<unknown>): Effect.Effect<void> => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const error = Cause.squash(cause)
  if (CliError.isCliError(error)) return Effect.void
  return Console.error(
    `mashbox: ${Schema.is(StartError)(error) ? describe(error) : `internal error, please report it\n${Cause.pretty(cause)}`}`
  )
}
