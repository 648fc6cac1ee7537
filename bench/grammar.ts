/**
 * Structured output: what a grammar costs to compile and what the mask of a token costs, beside `@mlc-ai/web-xgrammar` over the same schemas,
 * vocabulary and outputs; and decoding of a model of Qwen3 0.6B's shape with seeded random weights, with a grammar and without. All times of
 * grammars are processor time of the thread that works, ours and the peer's (but for its 99th percentiles, which are of the clock: Node has no
 * measure of work that is fine enough for one mask); decoding is compared within rounds, each output with the free text
 * before and after it. Run with `npm run bench:grammar`; `MASHBOX_BENCH_CACHE` names another folder for the model.
 */
import { Effect, Result } from "effect"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { loadavg, tmpdir } from "node:os"
import { basename, join } from "node:path"
import { greedy } from "../src/domain/Sampling.ts"
import type { Tool } from "../src/domain/Tool.ts"
import { Engine } from "../src/engine/Engine.ts"
import { layerInProcess } from "../src/engine/EngineInProcess.ts"
import { projectRoot } from "../src/engine/EnginePaths.ts"
import * as Gbnf from "../src/grammar/Gbnf.ts"
import { encodeGrammar } from "../src/grammar/IrEncoder.ts"
import * as JsonSchema from "../src/grammar/JsonSchema.ts"
import { compileCalls } from "../src/grammar/tools/CallGrammar.ts"
import { warmUpTools } from "../src/grammar/WarmUp.ts"
import * as GgufMetadata from "../src/models/GgufMetadata.ts"
import { quantile } from "./support/client.ts"
import { cpuTime, cpuTimeStep } from "./support/cpuTime.ts"
import { claudeCodeTools, rigidSchema, subjects } from "./support/grammarSubjects.ts"
import { buildBenches, runBench } from "./support/nativeBench.ts"
import { type PeerMasks, XGrammar } from "./support/xgrammar.ts"

/** Microseconds of one grammar in the engine, as `mashbox_grammar_bench` prints them. */
interface Measured {
  readonly compile: ReadonlyArray<number>
  readonly warm: ReadonlyArray<number>
  readonly first: ReadonlyArray<number>
  readonly again: ReadonlyArray<number>
  readonly accept: ReadonlyArray<number>
  readonly outputs: ReadonlyArray<ReadonlyArray<number>>
}

/** Tokens per second, and to those of the free text beside it. */
interface Decoded {
  readonly rate: number
  readonly ratio: number
}

const rounds = 9
const newTokens = 32
const promptTokens = 16
const frontEndRuns = 9
/** Microseconds of work over which a front end is averaged. */
const frontEndTime = 100_000

const qwen = join(projectRoot, "../shared/golden/tokenizer/real/qwen2.gguf")
const vocabularyFile = existsSync(qwen) ? qwen : join(projectRoot, "models/mashbox-demo.gguf")
const cache = process.env["MASHBOX_BENCH_CACHE"] ?? join(tmpdir(), "mashbox-bench")

const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / values.length
const median = (values: ReadonlyArray<number>) => quantile(values, 0.5)
const milliseconds = (microseconds: number) => (microseconds / 1000).toFixed(2)
const row = (cells: ReadonlyArray<string>) => console.log(`| ${cells.join(" | ")} |`)
const table = (heads: ReadonlyArray<string>) => {
  row(heads)
  console.log(`|${"---|".repeat(heads.length)}`)
}

/** The bytes that a front end makes, with what it took: the first time in this process, and usually. */
const frontEnd = (compile: () => Uint8Array) => {
  const started = performance.now()
  const worked = cpuTime()
  const bytes = compile()
  const first = Math.min((performance.now() - started) * 1000, cpuTime() - worked + cpuTimeStep)
  const before = cpuTime()
  let runs = 0
  while (runs < frontEndRuns || cpuTime() - before < frontEndTime) {
    compile()
    runs++
  }
  return { bytes, first, usual: (cpuTime() - before) / runs }
}

const ofSchema = (schema: object) => encodeGrammar(Result.getOrThrow(JsonSchema.compile(schema, { closed: true })))
const ofCalls = (tools: ReadonlyArray<Tool>) =>
  encodeGrammar(
    Result.getOrThrow(compileCalls({ syntax: "hermes", sample: "", tools, required: false, parallel: true, token: () => undefined }))
  )
const ofText = (gbnf: string) => encodeGrammar(Result.getOrThrow(Gbnf.compile(gbnf)))

const measureNative = (grammars: ReadonlyArray<Uint8Array>) => {
  const folder = mkdtempSync(join(tmpdir(), "mashbox-grammars-"))
  try {
    const files = grammars.map((bytes, index) => {
      const file = join(folder, `${index}.ir`)
      writeFileSync(file, bytes)
      return file
    })
    const [head = "", ...lines] = runBench("mashbox_grammar_bench", [vocabularyFile, ...files]).trim().split("\n")
    const vocabulary: { readonly tokens: number; readonly milliseconds: number } = JSON.parse(head)
    return { vocabulary, measured: lines.map((line): Measured => JSON.parse(line)) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const compareGrammars = async () => {
  // As the server does when its model is ready.
  for (const tools of warmUpTools) ofCalls(tools)
  const tools = claudeCodeTools(20)
  const all = subjects(tools)
  const fronts = all.map(({ schema }) => frontEnd(() => ofSchema(schema)))
  const calls = frontEnd(() => ofCalls(tools))
  const { measured, vocabulary } = measureNative([...fronts.map(({ bytes }) => bytes), calls.bytes])
  const { vocabulary: { tokens } } = await Effect.runPromise(GgufMetadata.read(vocabularyFile))
  const peer = new XGrammar({ tokens, eos: tokens.length - 1 })
  const others: Array<Awaited<ReturnType<typeof peer.measure>>> = []
  for (const [index, { schema }] of all.entries()) others.push(await peer.measure(schema, measured[index]?.outputs ?? []))
  await peer.close()

  console.log(
    `Vocabulary of ${basename(vocabularyFile)}: ${vocabulary.tokens} tokens, made ready in ${
      vocabulary.milliseconds.toFixed(0)
    } ms (xgrammar ${peer.milliseconds.toFixed(0)} ms).\n`
  )
  table([
    "schema",
    "compile: front end + engine (+ warm)",
    "xgrammar",
    "mask mean / p99",
    "xgrammar",
    "ratio of means",
    "again",
    "xgrammar",
    "refused"
  ])
  const ownMasks: Array<number> = []
  const peerMasks: Array<number> = []
  const peerMeans: Array<PeerMasks> = []
  const compiles: Array<{ readonly typical: boolean; readonly microseconds: number; readonly worst: number; readonly peer: number }> = []
  for (const [index, { name, typical }] of all.entries()) {
    const own = measured[index]
    const front = fronts[index]
    if (own === undefined || front === undefined) throw new Error(`${name} was not measured`)
    const other = others[index]
    ownMasks.push(...own.first)
    if (other !== undefined) {
      peerMasks.push(...other.first.times)
      peerMeans.push(other.first)
    }
    const compile = front.usual + median(own.compile)
    compiles.push({
      typical,
      microseconds: compile,
      worst: front.first + Math.max(...own.compile),
      peer: other === undefined ? Number.NaN : median(other.compile)
    })
    row([
      name,
      `${milliseconds(front.usual)} + ${milliseconds(median(own.compile))} (+ ${milliseconds(median(own.warm))}) ms`,
      ...(other === undefined ? ["not in time"] : [`${milliseconds(median(other.compile))} ms`]),
      `${mean(own.first).toFixed(1)} / ${quantile(own.first, 0.99).toFixed(0)} µs`,
      ...(other === undefined ? ["", ""] : [
        `${other.first.mean.toFixed(1)} / ${quantile(other.first.times, 0.99).toFixed(0)} µs`,
        (other.first.mean / mean(own.first)).toFixed(1)
      ]),
      `${mean(own.again).toFixed(1)} µs`,
      ...(other === undefined ? ["", ""] : [`${other.again.mean.toFixed(1)} µs`, `${other.refused} of ${own.outputs.length}`])
    ])
  }
  const called = measured[all.length]
  if (called === undefined) throw new Error("the calls were not measured")
  ownMasks.push(...called.first)
  row([
    `${tools.length} tools, calls in free text`,
    `${milliseconds(calls.usual)} + ${milliseconds(median(called.compile))} (+ ${milliseconds(median(called.warm))}) ms`,
    "",
    `${mean(called.first).toFixed(1)} / ${quantile(called.first, 0.99).toFixed(0)} µs`,
    "",
    "",
    `${mean(called.again).toFixed(1)} µs`,
    "",
    ""
  ])
  const typical = compiles.filter((compile) => compile.typical)
  return {
    maskMean: mean(ownMasks),
    maskP99: quantile(ownMasks, 0.99),
    peerMaskMean: peerMeans.reduce((sum, { mean, times }) => sum + mean * times.length, 0) / peerMasks.length,
    peerMaskP99: quantile(peerMasks, 0.99),
    typical: Math.max(...typical.map(({ microseconds }) => microseconds)),
    typicalFirst: Math.max(...typical.map(({ worst }) => worst)),
    peerTypical: Math.max(...typical.map(({ peer: microseconds }) => microseconds).filter(Number.isFinite)),
    tools: calls.usual + median(called.compile),
    toolsFirst: calls.first + Math.max(...called.compile)
  }
}

const grammars = {
  text: ofText("root ::= [^\"\\\\\\x00-\\x1f]{4000,}"),
  numbers: ofText("root ::= ([1-9] [0-9]* [,;]){2000,}"),
  rigid: ofSchema(rigidSchema)
}

/** Outputs with a grammar, each between two of free text, in each round: what else the machine does meets both. */
const decode = Effect.gen(function*() {
  const engine = yield* Engine
  const model = yield* engine.ready
  const stop = model.vocabularySize - 1
  const generate = Effect.fnUntraced(function*(grammar: Uint8Array | undefined, round: number) {
    const result = yield* engine.generate({
      tokens: Int32Array.from({ length: promptTokens }, (_, i) => (i * 7919 + round * 104_729) % model.vocabularySize),
      maxTokens: grammar === grammars.rigid ? 1000 : newTokens,
      stopTokens: Int32Array.of(stop),
      sampling: greedy,
      ...(grammar === undefined ? {} : { grammar })
    }, { onToken: () => {} })
    return (result.generatedTokens - 1) / result.generationMs * 1000
  })
  const free: Array<number> = []
  const measured = { text: Array<Decoded>(), numbers: Array<Decoded>(), rigid: Array<Decoded>() }
  yield* generate(undefined, 0)
  for (let round = 0; round < rounds; round++) {
    free.push(yield* generate(undefined, round))
    for (const kind of ["text", "numbers", "rigid"] as const) {
      const before = free.at(-1) ?? Number.NaN
      const rate = yield* generate(grammars[kind], round)
      const after = yield* generate(undefined, round)
      free.push(after)
      measured[kind].push({ rate, ratio: rate * (1 / before + 1 / after) / 2 })
    }
  }
  return { ...measured, free: free.map((rate): Decoded => ({ rate, ratio: 1 })) }
})

const compareDecoding = async () => {
  mkdirSync(cache, { recursive: true })
  const path = join(cache, `qwen3-0.6b-${basename(vocabularyFile)}`)
  if (!existsSync(path)) runBench("mashbox_random_qwen3", [vocabularyFile, path])
  const load = { path, threads: 0, slots: 1, contextLength: 2048, kvType: "f16", batchTokens: 256 } as const
  const measured = await Effect.runPromise(decode.pipe(Effect.provide(layerInProcess({ load }))))
  const rate = (kind: keyof typeof measured) => median(measured[kind].map((one) => one.rate)).toFixed(1)
  const ratio = (kind: keyof typeof measured) => median(measured[kind].map((one) => one.ratio))
  const spread = (kind: keyof typeof measured) => {
    const ratios = measured[kind].map((one) => one.ratio)
    return `${quantile(ratios, 0.25).toFixed(3)} to ${quantile(ratios, 0.75).toFixed(3)}`
  }
  console.log(`\nDecode of ${basename(path)}, medians of ${rounds} rounds, ratios to the free text before and after within a round:\n`)
  table(["output", "tokens/s", "to free text", "quartiles"])
  row(["free text", rate("free"), "1", ""])
  row(["text of a JSON string, nothing forced", rate("text"), ratio("text").toFixed(3), spread("text")])
  row(["numbers, nothing forced", rate("numbers"), ratio("numbers").toFixed(3), spread("numbers")])
  row(["rigid schema, jump-ahead", rate("rigid"), ratio("rigid").toFixed(2), spread("rigid")])
  return { constrained: Math.min(ratio("text"), ratio("numbers")), rigid: ratio("rigid") }
}

const load = () => loadavg().map((value) => value.toFixed(2)).join(", ")

buildBenches(["mashbox_grammar_bench", "mashbox_random_qwen3"])
console.log(`Load average ${load()} at the start.`)
const figures = await compareGrammars()
const decoded = await compareDecoding()

console.log("\nBudgets:\n")
table(["budget", "limit", "figure", "xgrammar", "holds"])
const budget = (name: string, limit: string, figure: string, peer: string, holds: boolean) =>
  row([name, limit, figure, peer, holds ? "yes" : "no"])
budget("mask, mean", "50 µs", `${figures.maskMean.toFixed(1)} µs`, `${figures.peerMaskMean.toFixed(1)} µs`, figures.maskMean <= 50)
budget("mask, p99", "1000 µs", `${figures.maskP99.toFixed(0)} µs`, `${figures.peerMaskP99.toFixed(0)} µs`, figures.maskP99 <= 1000)
budget(
  "compile, slowest typical schema",
  "5 ms",
  `${milliseconds(figures.typical)} ms`,
  `${milliseconds(figures.peerTypical)} ms`,
  figures.typical <= 5000
)
budget("the same, first after the server's warm-up", "5 ms", `${milliseconds(figures.typicalFirst)} ms`, "", figures.typicalFirst <= 5000)
budget("compile, calls of 20 tools", "50 ms", `${milliseconds(figures.tools)} ms`, "", figures.tools <= 50_000)
budget("the same, first time", "50 ms", `${milliseconds(figures.toolsFirst)} ms`, "", figures.toolsFirst <= 50_000)
budget("constrained to free decode", "≥ 0.95", decoded.constrained.toFixed(3), "", decoded.constrained >= 0.95)
budget("rigid schema to free decode", "> 1", decoded.rigid.toFixed(2), "", decoded.rigid > 1)
console.log(`\nLoad average ${load()} at the end.`)
