import { Effect, FileSystem, Path } from "effect"
import * as Catalog from "../models/Catalog.ts"
import type { SettingsValue } from "../Settings.ts"

/**
 * The settings with the model that they name in the catalog of models, if it is there: by an id, an alias, or its file. Without `models` it
 * is looked for in $XDG_CONFIG_HOME/mashbox/models.json, where it need not be.
 */
export const inCatalog = Effect.fnUntraced(function*<A extends Pick<SettingsValue, "model" | "models">>(
  settings: A,
  environment: Readonly<Record<string, string | undefined>>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const usual = path.join(environment["XDG_CONFIG_HOME"] ?? path.join(environment["HOME"] ?? "", ".config"), "mashbox", "models.json")
  if (settings.models === undefined && !(yield* fs.exists(usual).pipe(Effect.orElseSucceed(() => false)))) return settings
  const entry = yield* Catalog.find(settings.models ?? usual, settings.model)
  return entry === undefined ? settings : { ...settings, model: entry.file, catalogEntry: entry }
})
