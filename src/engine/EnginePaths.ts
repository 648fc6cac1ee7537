import { join } from "node:path"
import { programPath, projectRoot } from "../ProgramPath.ts"

export { projectRoot }

/** The program of the engine process: bundled beside a bundled caller, the source beside a source. */
export const workerPath: string = programPath("engine/worker.ts", "worker")

/** The program that looks at a model file with the addon and ends. */
export const inspectorPath: string = programPath("engine/inspector.ts", "inspector")

/** The native addon; MASHBOX_ADDON names another one. */
export const addonPath = (): string => process.env["MASHBOX_ADDON"] || join(projectRoot, "build", "native", "mashbox.node")
