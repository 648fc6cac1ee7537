/**
 * The engine's speed for every model family: a mid-size model of seeded random weights each, written once into the cache folder, with
 * prefill and decode tokens per second and decoding as a share of what the machine's memory gives in the same run. For Qwen3.5 also what
 * a token of prompts of several lengths costs, and the chunked form of its recurrence against the recurrence token by token.
 * Run with `npm run bench:families [-- FAMILY…]`; `MASHBOX_BENCH_CACHE` names another cache folder.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { projectRoot } from "../src/engine/EnginePaths.ts"
import { readBandwidth } from "./support/bandwidth.ts"

interface Measured {
  readonly family: string
  readonly isa: string
  readonly threads: number
  readonly bytes: number
  /** Of weights that one decoded token reads. */
  readonly bytesPerToken: number
  /** Tokens per second. */
  readonly prefill: number
  readonly decode: number
  readonly lengths: ReadonlyArray<{ readonly tokens: number; readonly secondsPerToken: number }>
}

const recurrent = "qwen35"
const promptLengths = [256, 1024, 2048, 4096]
const build = join(projectRoot, "build/native")
const cache = process.env["MASHBOX_BENCH_CACHE"] ?? join(tmpdir(), "mashbox-bench")

const run = (program: string, args: ReadonlyArray<string>) =>
  execFileSync(join(build, program), args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })

const measure = (family: string): Measured =>
  JSON.parse(run("mashbox_family_bench", [family, cache, ...(family === recurrent ? promptLengths.map(String) : [])]))

const bandwidth = readBandwidth(0)
for (const target of ["mashbox_family_bench", "mashbox_delta_net_bench"]) {
  execFileSync("cmake", ["--build", build, "--target", target], { cwd: projectRoot, stdio: ["ignore", "ignore", "inherit"] })
}
mkdirSync(cache, { recursive: true })
const known = run("mashbox_family_bench", []).trim().split("\n")
const families = process.argv.length > 2 ? process.argv.slice(2) : known
const unknown = families.filter((family) => !known.includes(family))
if (unknown.length > 0) throw new Error(`${unknown.join(", ")}: not one of ${known.join(", ")}`)

console.log(
  `Read bandwidth ${(bandwidth / 1e9).toFixed(2)} GB/s; load average ${loadavg().map((load) => load.toFixed(2)).join(", ")} at the start.\n`
)
console.log("| family | file | read per token | prefill, 512 tokens | decode | weights read | share of bandwidth |")
console.log("|---|---|---|---|---|---|---|")
let prompts: Measured | undefined
for (const family of families) {
  const { bytes, bytesPerToken, decode, prefill, ...rest } = measure(family)
  const rate = decode * bytesPerToken
  const cells = [
    family,
    `${(bytes / 1e6).toFixed(0)} MB`,
    `${(bytesPerToken / 1e6).toFixed(1)} MB`,
    `${prefill.toFixed(0)} tokens/s`,
    `${decode.toFixed(1)} tokens/s`,
    `${(rate / 1e9).toFixed(2)} GB/s`,
    (rate / bandwidth).toFixed(2)
  ]
  console.log(`| ${cells.join(" | ")} |`)
  if (rest.lengths.length > 0) prompts = { bytes, bytesPerToken, decode, prefill, ...rest }
}

if (prompts !== undefined) {
  console.log(`\nPrefill of ${recurrent}, ${prompts.isa}, ${prompts.threads} threads:\n`)
  console.log("| prompt | per token |")
  console.log("|---|---|")
  for (const { secondsPerToken, tokens } of prompts.lengths) console.log(`| ${tokens} tokens | ${(secondsPerToken * 1e6).toFixed(0)} µs |`)
  const costs = prompts.lengths.map(({ secondsPerToken }) => secondsPerToken)
  console.log(`\nLargest to smallest: ${(Math.max(...costs) / Math.min(...costs)).toFixed(2)}.`)
  console.log(`\nOne gated delta net layer:\n\n\`\`\`\n${run("mashbox_delta_net_bench", []).trim()}\n\`\`\``)
}
