import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"

const root = resolve(import.meta.dirname, "../../..")

/** What each folder may import of the project, itself aside. `effect` only: no Node, no other package. */
const allowed: Record<string, { readonly folders: ReadonlyArray<string>; readonly effectOnly?: true }> = {
  schema: { folders: [], effectOnly: true },
  "src/domain": { folders: [], effectOnly: true },
  "src/dialect": { folders: ["schema", "src/domain"], effectOnly: true },
  "src/tokenizer": { folders: ["src/domain", "src/models"] },
  "src/prompt": { folders: ["src/domain", "src/models", "src/tokenizer", "src/ProgramPath.ts"] },
  "src/engine": { folders: ["src/domain", "src/ProgramPath.ts", "src/Maglev.ts"] },
  "src/grammar": { folders: ["src/domain", "src/ProgramPath.ts"] },
  "src/models": { folders: ["src/domain"] },
  "src/auth": { folders: ["src/domain", "src/Settings.ts"] },
  "src/telemetry": { folders: ["src/domain"] },
  "src/generation": {
    folders: ["src/domain", "src/engine", "src/grammar", "src/tokenizer", "src/prompt", "src/models", "src/telemetry", "src/Settings.ts"]
  },
  "src/server": {
    folders: [
      "package.json",
      "schema",
      "src/domain",
      "src/dialect",
      "src/generation",
      "src/engine",
      "src/auth",
      "src/telemetry",
      "src/models",
      "src/tokenizer",
      "src/Settings.ts"
    ]
  }
}

const sources = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

const importsOf = (file: string) =>
  [
    ...readFileSync(join(root, file), "utf8").matchAll(
      /^(?:import|export)\b[^"';]*?from "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm
    )
  ]
    .map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? "")

/** The folder (or single file of `src`) that a path belongs to. */
const home = (path: string) => path.startsWith("src/") ? path.split("/").slice(0, 2).join("/") : path.split("/")[0] ?? path

describe("imports", () => {
  for (const [folder, { folders, effectOnly }] of Object.entries(allowed)) {
    it(`${folder} imports only what stands below it`, () => {
      for (const file of sources(folder)) {
        for (const specifier of importsOf(file)) {
          if (specifier.startsWith(".")) {
            const target = home(relative(root, resolve(root, dirname(file), specifier)))
            assert.isTrue(target === folder || folders.includes(target), `${file} imports ${specifier}`)
          } else if (effectOnly) {
            assert.match(specifier, /^effect(\/|$)/, `${file} imports ${specifier}`)
          }
        }
      }
    })
  }

  it("only src/engine/worker.ts and the in-process layer load the addon", () => {
    const loaders = sources("src").filter((file) => /createRequire|process\.dlopen/.test(readFileSync(join(root, file), "utf8")))
    for (const file of loaders) assert.isTrue(file.startsWith("src/engine/"), file)
  })

  it("no barrel inside src", () => {
    const barrels = sources("src").filter((file) => file.endsWith("/index.ts") && file !== "src/index.ts")
    assert.deepStrictEqual(barrels, [])
  })
})
