/**
 * The engine's own speed, without a server: prefill and decode tokens per second, the bytes of weights that one token reads, and decoding as
 * a share of what the machine's memory gives in the same run. The bundled model always, the real small one where it lies beside the
 * checkout, or the GGUF files given as arguments. Run with `npm run bench:engine`.
 */
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { basename, join } from "node:path"
import { greedy } from "../src/domain/Sampling.ts"
import { Engine, type EngineRequest } from "../src/engine/Engine.ts"
import { layerInProcess } from "../src/engine/EngineInProcess.ts"
import { projectRoot } from "../src/engine/EnginePaths.ts"
import * as GgufMetadata from "../src/models/GgufMetadata.ts"
import { buildBenches, readBandwidth } from "./support/nativeBench.ts"

const promptTokens = 512
const newTokens = 128
const slots = 8
const runs = 3

const bundled = join(projectRoot, "models/mashbox-demo.gguf")
const real = join(projectRoot, "../shared/models/SmolLM2-135M-Instruct.Q4_1.gguf")
const paths = process.argv.length > 2 ? process.argv.slice(2) : [bundled, real].filter(existsSync)

const request = (vocabulary: number, count: number, maxTokens: number, seed: number): EngineRequest => ({
  tokens: Int32Array.from({ length: count }, (_, i) => (i * 7919 + seed * 104_729) % vocabulary),
  maxTokens,
  stopTokens: new Int32Array(),
  sampling: greedy
})

const best = (values: ReadonlyArray<number>) => Math.max(...values)

const measure = Effect.fnUntraced(function*(path: string, bandwidth: number) {
  const engine = yield* Engine
  const model = yield* engine.ready
  const { tensorBytes } = yield* GgufMetadata.read(path)
  const generate = (count: number, maxTokens: number, seed: number) =>
    engine.generate(request(model.vocabularySize, count, maxTokens, seed), { onToken: () => {} })

  const prefill: Array<number> = []
  const decode: Array<number> = []
  const together: Array<number> = []
  for (let run = 0; run < runs; run++) {
    prefill.push(promptTokens / (yield* generate(promptTokens, 1, run)).promptMs * 1000)
    const one = yield* generate(16, newTokens, run)
    decode.push((one.generatedTokens - 1) / one.generationMs * 1000)
    const started = performance.now()
    const all = yield* Effect.all(Array.from({ length: slots }, (_, i) => generate(16, newTokens, i)), { concurrency: slots })
    together.push(all.reduce((sum, { generatedTokens }) => sum + generatedTokens, 0) / (performance.now() - started) * 1000)
  }
  const bytesPerSecond = best(decode) * tensorBytes
  console.log(`${basename(path)} (${model.architecture}, ${model.isa}, ${model.threads} threads), best of ${runs}`)
  console.log(`  prefill       ${best(prefill).toFixed(0)} tokens/s (${promptTokens} tokens)`)
  console.log(
    `  decode        ${best(decode).toFixed(1)} tokens/s; ${(tensorBytes / 1e6).toFixed(1)} MB of weights per token, ${
      (bytesPerSecond / 1e9).toFixed(2)
    } GB/s = ${(bytesPerSecond / bandwidth).toFixed(2)} of the read bandwidth`
  )
  console.log(`  decode, ${slots} slots together  ${best(together).toFixed(1)} tokens/s`)
})

const main = Effect.gen(function*() {
  buildBenches(["mashbox_bandwidth"])
  const bandwidth = readBandwidth(0)
  console.log(`read bandwidth  ${(bandwidth / 1e9).toFixed(2)} GB/s\n`)
  for (const path of paths) {
    const load = { path, threads: 0, slots, contextLength: 2048, kvType: "f16", batchTokens: 256 } as const
    yield* measure(path, bandwidth).pipe(Effect.provide(layerInProcess({ load })))
  }
})

await Effect.runPromise(main)
