import { Effect, FileSystem, Path } from "effect"
import { parse } from "smol-toml"
import { SettingsError } from "../Settings.ts"

/** Where settings are looked for when --config does not say. */
const defaultPath = Effect.fnUntraced(function*(environment: Readonly<Record<string, string | undefined>>) {
  const path = yield* Path.Path
  const folder = environment.XDG_CONFIG_HOME ?? path.join(environment.HOME ?? "", ".config")
  return path.join(folder, "mashbox", "config.toml")
})

/** The settings of a TOML file; the default file may be absent, a named one may not. */
export const readConfigFile = Effect.fnUntraced(function*(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>
) {
  const fs = yield* FileSystem.FileSystem
  const file = named ?? (yield* defaultPath(environment))
  if (named === undefined && !(yield* fs.exists(file).pipe(Effect.orElseSucceed(() => false)))) return {}
  const text = yield* fs.readFileString(file).pipe(
    Effect.mapError((error) => new SettingsError({ setting: "config", message: `cannot read ${file}: ${error.reason._tag}` }))
  )
  return yield* Effect.try({
    try: () => parse(text),
    catch: (error) => new SettingsError({ setting: "config", message: `${file} is not TOML: ${firstLine(error)}` })
  })
})

const firstLine = (error: unknown) => String(error instanceof Error ? error.message : error).split("\n", 1)[0]
