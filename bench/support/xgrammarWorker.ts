import type * as XGrammar from "@mlc-ai/web-xgrammar"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parentPort, workerData } from "node:worker_threads"
import { projectRoot } from "../../src/engine/EnginePaths.ts"
import { cpuTime } from "./cpuTime.ts"
import type { PeerMasks, PeerMeasured, PeerMessage, PeerSubject, PeerVocabulary } from "./xgrammar.ts"

const compiles = 3
/** Microseconds of compiling after which it is not compiled again. */
const patience = 1_000_000

/** The package is a UMD file that says it is an ES module: only a copy with another name loads. */
const load = (): typeof XGrammar => {
  const folder = mkdtempSync(join(tmpdir(), "mashbox-xgrammar-"))
  try {
    const copy = join(folder, "xgrammar.cjs")
    copyFileSync(join(projectRoot, "node_modules/@mlc-ai/web-xgrammar/lib/index.js"), copy)
    return createRequire(import.meta.url)(copy)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const { GrammarCompiler, GrammarMatcher, TokenizerInfo } = load()
const { eos, tokens }: PeerVocabulary = workerData
const send = (message: PeerMessage) => parentPort?.postMessage(message, [])

await TokenizerInfo.createTokenizerInfo(["a", "b"], "raw", false, 2, 1)
const started = cpuTime()
const info = await TokenizerInfo.createTokenizerInfo([...tokens], "byte_level", false, tokens.length, eos)
const milliseconds = (cpuTime() - started) / 1000
const compiler = await GrammarCompiler.createGrammarCompiler(info, false)

const measure = async ({ outputs, schema }: PeerSubject): Promise<PeerMeasured> => {
  const compileOnce = async () => {
    const before = cpuTime()
    const grammar = await compiler.compileJSONSchema(schema, false, -1, [", ", ": "], true)
    return { grammar, taken: cpuTime() - before }
  }
  let compiled = await compileOnce()
  const compile = [compiled.taken]
  while (compile.length < compiles && compiled.taken < patience) {
    compiled.grammar.dispose()
    compiled = await compileOnce()
    compile.push(compiled.taken)
  }
  let refused = 0
  const walk = async (): Promise<PeerMasks> => {
    const times: Array<number> = []
    refused = 0
    const worked = cpuTime()
    const started = performance.now()
    for (const output of outputs) {
      const matcher = await GrammarMatcher.createGrammarMatcher(compiled.grammar)
      for (const token of output) {
        const before = performance.now()
        await matcher.getNextTokenBitmask()
        times.push((performance.now() - before) * 1000)
        if (!matcher.acceptToken(token)) {
          refused++
          break
        }
      }
      matcher.dispose()
    }
    // The share that masks have of the clock is taken for their share of the work.
    const share = 1000 * (performance.now() - started)
    return { times, mean: (cpuTime() - worked) * times.reduce((sum, time) => sum + time, 0) / share / times.length }
  }
  const first = await walk()
  const again = await walk()
  compiled.grammar.dispose()
  return { compile, first, again, refused }
}

parentPort?.on("message", async (subject: PeerSubject) => send({ kind: "measured", measured: await measure(subject) }))
send({ kind: "ready", milliseconds })
