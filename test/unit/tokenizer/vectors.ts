import { Effect, Result } from "effect"
import { existsSync, readFileSync } from "node:fs"
import * as GgufMetadata from "../../../src/models/GgufMetadata.ts"
import type { Vocabulary } from "../../../src/models/ModelMetadata.ts"

const folders = ["test/fixtures/golden/tokenizer", "../shared/golden/tokenizer"]

/** Path of a golden file, committed or beside the checkout. */
export const goldenPath = (name: string): string | undefined =>
  folders.map((folder) => `${folder}/${name}`).find((path) => existsSync(path))

export const readVocabulary = (path: string): Vocabulary => Effect.runSync(GgufMetadata.read(path)).vocabulary

/** The vocabulary that a vector file calls `name`: a small one, or `real/…`. */
export const goldenVocabulary = (name: string): Vocabulary | undefined => {
  const path = goldenPath(name.startsWith("real/") ? `${name}.gguf` : `small/${name}.gguf`)
  return path === undefined ? undefined : readVocabulary(path)
}

export const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"))

export const getOrThrow = Result.getOrThrow
