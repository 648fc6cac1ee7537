import { existsSync } from "node:fs"
import { dirname, join } from "node:path"

const packageRoot = (folder: string): string => {
  if (existsSync(join(folder, "package.json"))) return folder
  const parent = dirname(folder)
  return parent === folder ? import.meta.dirname : packageRoot(parent)
}

/** The folder that holds `build/`, `dist/`, `models/` and `src/`. */
export const projectRoot: string = packageRoot(import.meta.dirname)

/** The program of the engine process: bundled beside a bundled caller, the source beside a source. */
export const workerPath: string = import.meta.filename.endsWith(".ts")
  ? join(projectRoot, "src", "engine", "worker.ts")
  : join(projectRoot, "dist", "worker.js")

/** The native addon; MASHBOX_ADDON names another one. */
export const addonPath = (): string => process.env["MASHBOX_ADDON"] || join(projectRoot, "build", "native", "mashbox.node")
