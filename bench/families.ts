/**
 * The engine's speed for every model family: a mid-size model of seeded random weights each, written once into the cache folder, with
 * prefill and decode tokens per second and decoding as a share of what the machine's memory gives beside it. For Qwen3.5 also what
 * a token of prompts of several lengths costs, and the chunked form of its recurrence against the recurrence token by token.
 * Run with `npm run bench:families [-- FAMILY…]`; `MASHBOX_BENCH_CACHE` names another cache folder.
 */
import { mkdirSync } from "node:fs"
import { loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { buildBenches, readBandwidth, runBench } from "./support/nativeBench.ts"

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
const promptLengths = [256, 1024, 4096]
const cache = process.env["MASHBOX_BENCH_CACHE"] ?? join(tmpdir(), "mashbox-bench")

const measure = (family: string): Measured =>
  JSON.parse(runBench("mashbox_family_bench", [family, cache, ...(family === recurrent ? promptLengths.map(String) : [])]))

buildBenches(["mashbox_bandwidth", "mashbox_family_bench", "mashbox_delta_net_bench"])
mkdirSync(cache, { recursive: true })
const known = runBench("mashbox_family_bench", []).trim().split("\n")
const families = process.argv.length > 2 ? process.argv.slice(2) : known
const unknown = families.filter((family) => !known.includes(family))
if (unknown.length > 0) throw new Error(`${unknown.join(", ")}: not one of ${known.join(", ")}`)

let before = readBandwidth(0)
console.log(
  `Load average ${loadavg().map((load) => load.toFixed(2)).join(", ")} at the start, read bandwidth ${(before / 1e9).toFixed(2)} GB/s.`
)
console.log("Shares are of the bandwidth measured right before and after the model, on average.\n")
console.log("| family | file | read per token | prefill, 512 tokens | decode | weights read | share of bandwidth |")
console.log("|---|---|---|---|---|---|---|")
let prompts: Measured | undefined
for (const family of families) {
  const { bytes, bytesPerToken, decode, prefill, ...rest } = measure(family)
  const after = readBandwidth(0)
  const bandwidth = (before + after) / 2
  before = after
  const rate = decode * bytesPerToken
  const cells = [
    family,
    `${(bytes / 1e6).toFixed(0)} MB`,
    `${(bytesPerToken / 1e6).toFixed(1)} MB`,
    `${prefill.toFixed(0)} tokens/s`,
    `${decode.toFixed(1)} tokens/s`,
    `${(rate / 1e9).toFixed(2)} GB/s`,
    `${(rate / bandwidth).toFixed(2)} of ${(bandwidth / 1e9).toFixed(1)} GB/s`
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
  const { secondsPerToken, tokens } = prompts.lengths[prompts.lengths.length - 1]!
  console.log(
    `\nDecoding token by token: ${(1e6 / prompts.decode).toFixed(0)} µs per token, ${
      (1 / prompts.decode / secondsPerToken).toFixed(2)
    } times the prefill of ${tokens} tokens.`
  )
  console.log(`\nOne gated delta net layer:\n\n\`\`\`\n${runBench("mashbox_delta_net_bench", []).trim()}\n\`\`\``)
}
