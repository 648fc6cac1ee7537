import { existsSync } from "node:fs"
import { dirname, join } from "node:path"

const packageRoot = (folder: string): string => {
  if (existsSync(join(folder, "package.json"))) return folder
  const parent = dirname(folder)
  return parent === folder ? import.meta.dirname : packageRoot(parent)
}

/** The folder that holds `build/`, `dist/`, `models/` and `src/`. */
export const projectRoot: string = packageRoot(import.meta.dirname)

/** A program of a process or thread of its own: `dist/<bundle>.js` beside a bundled caller, the source (a path in `src`) beside a source. */
export const programPath = (source: string, bundle: string): string =>
  import.meta.filename.endsWith(".ts") ? join(projectRoot, "src", source) : join(projectRoot, "dist", `${bundle}.js`)
