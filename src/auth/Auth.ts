import { Context, Effect, Layer, Result, Schema } from "effect"
import { readFileSync, statSync } from "node:fs"
import { RequestRefused } from "../domain/Errors.ts"
import { isLoopback } from "../domain/HostName.ts"
import { Settings } from "../Settings.ts"
import { type ApiKeyLine, ApiKeys, parseKeyFile } from "./ApiKeys.ts"

/** The keys cannot be used, or the server would stand open without any; `message` is one line for a person. */
export class AuthError extends Schema.TaggedError<AuthError>()("AuthError", { message: Schema.String }) {}

/** The tenant of everybody where no key is configured. */
export const localTenant = "local"

/** Header values of a request that may carry a key. */
export interface Credentials {
  readonly authorization: string | undefined
  readonly apiKey: string | undefined
}

/** Who sends a request. */
export class Auth extends Context.Service<Auth, {
  readonly authenticate: (credentials: Credentials) => Effect.Effect<string, RequestRefused>
}>()("mashbox/auth/Auth") {
  /** Keys of `--api-key-file` (read again when it changes) and MASHBOX_API_KEY; without any, a loopback host is open and another one refused. */
  static readonly layer: Layer.Layer<Auth, AuthError, Settings> = Layer.effect(
    Auth,
    Effect.gen(function*() {
      const settings = yield* Settings
      const own = settings.apiKey === undefined ? [] : [{ name: undefined, key: settings.apiKey }]
      if (settings.apiKey !== undefined && !/^\S+$/.test(settings.apiKey)) {
        return yield* new AuthError({ message: "MASHBOX_API_KEY must be a non-empty key without white space" })
      }
      if (settings.apiKeyFile === undefined) {
        if (own.length > 0) return checked(new ApiKeys(own))
        if (isLoopback(settings.host)) return { authenticate: () => Effect.succeed(localTenant) }
        return yield* new AuthError({
          message: `--host ${settings.host} opens the server to other machines: give --api-key-file or MASHBOX_API_KEY as well`
        })
      }
      const path = settings.apiKeyFile
      let stamp = fileStamp(path)
      let keys = yield* Effect.fromResult(loadKeys(path, own))
      return {
        authenticate: (credentials) =>
          Effect.suspend(() => {
            const current = fileStamp(path)
            if (current === stamp) return authenticate(keys, credentials)
            stamp = current
            return loadKeys(path, own).pipe(
              Effect.fromResult,
              Effect.tap((loaded) => {
                keys = loaded
                return Effect.logInfo("api keys reloaded", { keys: loaded.size })
              }),
              Effect.catch((error) =>
                Effect.logWarning("api key file is not usable, the keys before stay valid", { reason: error.message })
              ),
              Effect.andThen(Effect.suspend(() => authenticate(keys, credentials)))
            )
          })
      }
    })
  )
}

/** Changes whenever the file does, also when it is replaced or removed. */
const fileStamp = (path: string): string => {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true })
  return stat === undefined ? "" : `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
}

const loadKeys = (path: string, own: ReadonlyArray<ApiKeyLine>): Result.Result<ApiKeys, AuthError> => {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch {
    return Result.fail(new AuthError({ message: `--api-key-file ${path} cannot be read` }))
  }
  const parsed = parseKeyFile(text)
  if ("badLine" in parsed) {
    return Result.fail(new AuthError({ message: `--api-key-file ${path}: line ${parsed.badLine} is neither a key nor name:key` }))
  }
  if (parsed.keys.length === 0) return Result.fail(new AuthError({ message: `--api-key-file ${path} holds no key` }))
  return Result.succeed(new ApiKeys([...own, ...parsed.keys]))
}

const checked = (keys: ApiKeys): Auth["Service"] => ({ authenticate: (credentials) => authenticate(keys, credentials) })

const authenticate = (keys: ApiKeys, { apiKey, authorization }: Credentials): Effect.Effect<string, RequestRefused> => {
  const bearer = /^bearer +(\S+)\s*$/i.exec(authorization ?? "")?.[1]
  const key = bearer ?? apiKey
  if (key === undefined) {
    return Effect.fail(
      new RequestRefused({
        reason: "Unauthenticated",
        message: "This server needs an API key: send it as \"Authorization: Bearer <key>\" or \"x-api-key: <key>\"."
      })
    )
  }
  const tenant = keys.tenant(key) ?? (apiKey === undefined ? undefined : keys.tenant(apiKey))
  return tenant === undefined
    ? Effect.fail(new RequestRefused({ reason: "Unauthenticated", message: "The API key is not one of this server's." }))
    : Effect.succeed(tenant)
}
