import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { addonPath } from "./EnginePaths.ts"
import type { Native } from "./Native.ts"

/** Why the addon could not do something; what a worker reports as JSON when it cannot load. */
export interface NativeFailure {
  readonly code: string | undefined
  readonly message: string
  readonly subject: string | undefined
}

/**
 * The addon at `path`: a compiled `.node` file or an ES module whose exports implement `Native`.
 *
 * @throws an `Error` with a `code` and a one-line message when there is none that this Node can load.
 */
export const loadNative = async (path: string = addonPath()): Promise<Native> => {
  const file = resolve(path)
  if (!existsSync(file)) throw addonError("not_found", `the native addon ${file} does not exist; build it first`)
  const module: unknown = file.endsWith(".node") ? createRequire(import.meta.url)(file) : await import(pathToFileURL(file).href)
  if (!isNative(module)) throw addonError("invalid", `${file} is not the native addon of this version`)
  return module
}

const isNative = (module: unknown): module is Native =>
  typeof module === "object" && module !== null && "load" in module && typeof module.load === "function" &&
  "info" in module && typeof module.info === "function"

const addonError = (code: string, message: string): Error => Object.assign(new Error(message), { code, subject: "addon" })

/** The parts of a thrown value that the addon's errors have. */
export const nativeFailure = (thrown: unknown): NativeFailure => {
  if (!(thrown instanceof Error)) return { code: undefined, message: String(thrown), subject: undefined }
  return {
    code: "code" in thrown && typeof thrown.code === "string" ? thrown.code : undefined,
    message: thrown.message,
    subject: "subject" in thrown && typeof thrown.subject === "string" ? thrown.subject : undefined
  }
}
