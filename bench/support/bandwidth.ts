import { execFileSync, type ExecFileSyncOptions } from "node:child_process"
import { join } from "node:path"
import { projectRoot } from "../../src/engine/EnginePaths.ts"

/** Bytes per second that this many threads read from memory, measured now by `native/bench/bandwidth.cpp`. */
export const readBandwidth = (threads: number): number => {
  const build = join(projectRoot, "build/native")
  const quiet: ExecFileSyncOptions = { cwd: projectRoot, stdio: ["ignore", "ignore", "inherit"] }
  execFileSync("cmake", ["-S", "native", "-B", build, "-DMASHBOX_BENCH=ON"], quiet)
  execFileSync("cmake", ["--build", build, "--target", "mashbox_bandwidth"], quiet)
  return Number(execFileSync(join(build, "mashbox_bandwidth"), [String(threads)], { encoding: "utf8" }))
}
