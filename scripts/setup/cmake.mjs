import { availableParallelism } from "node:os"
import { join } from "node:path"
import { run } from "./run.mjs"
import { requireBuildTools } from "./tools.mjs"

/**
 * Configures and builds one target of native/ in its own folder, with the fraction that make reports.
 * @param {{ root: string, build: string, target: string, options: ReadonlyArray<string>, onProgress: (fraction: number) => void }} options
 */
export const cmake = async ({ root, build, target, options, onProgress }) => {
  requireBuildTools()
  await run("cmake", ["-S", join(root, "native"), "-B", build, ...options], { cwd: root })
  await run("cmake", ["--build", build, "--target", target, "--parallel", String(availableParallelism())], {
    cwd: root,
    onLine: (line) => {
      const percent = /^\[ *(\d+)%\]/.exec(line)?.[1]
      if (percent !== undefined) onProgress(Number(percent) / 100)
    }
  })
}
