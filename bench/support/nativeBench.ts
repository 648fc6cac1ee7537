import { execFileSync, type ExecFileSyncOptions } from "node:child_process"
import { join } from "node:path"
import { projectRoot } from "../../src/engine/EnginePaths.ts"

const build = join(projectRoot, "build/native")

/** Builds programs of `native/bench`. */
export const buildBenches = (targets: ReadonlyArray<string>): void => {
  const quiet: ExecFileSyncOptions = { cwd: projectRoot, stdio: ["ignore", "ignore", "inherit"] }
  execFileSync("cmake", ["-S", "native", "-B", build, "-DMASHBOX_BENCH=ON"], quiet)
  for (const target of targets) execFileSync("cmake", ["--build", build, "--target", target], quiet)
}

/** What a program that was built prints. */
export const runBench = (program: string, args: ReadonlyArray<string>): string =>
  execFileSync(join(build, program), args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })

/** Bytes per second that this many threads (0: one per core) read from memory, measured now by `mashbox_bandwidth`. */
export const readBandwidth = (threads: number): number => Number(runBench("mashbox_bandwidth", [String(threads)]))
