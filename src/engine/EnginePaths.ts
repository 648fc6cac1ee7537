import { existsSync } from "node:fs"
import { dirname, join } from "node:path"

const packageRoot = (folder: string): string => {
  if (existsSync(join(folder, "package.json"))) return folder
  const parent = dirname(folder)
  return parent === folder ? import.meta.dirname : packageRoot(parent)
}

/** The folder that holds `build/`, `dist/`, `models/` and `src/`. */
export const projectRoot: string = packageRoot(import.meta.dirname)

function programPath(name: string): string {
  return import.meta.filename.endsWith(".ts")
    ? join(projectRoot, "src", "engine", `${name}.ts`)
    : join(projectRoot, "dist", `${name}.js`)
}

/** The program of the engine process: bundled beside a bundled caller, the source beside a source. */
export const workerPath: string = programPath("worker")

/** The program that looks at a model file with the addon and ends. */
export const inspectorPath: string = programPath("inspector")

/** The native addon; MASHBOX_ADDON names another one. */
export const addonPath = (): string => process.env["MASHBOX_ADDON"] || join(projectRoot, "build", "native", "mashbox.node")
