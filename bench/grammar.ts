/**
 * Structured output: what a grammar costs to compile and what the mask of a token costs, beside `@mlc-ai/web-xgrammar` over the same schemas,
 * vocabulary and outputs; and decoding of a model of Qwen3 0.6B's shape with seeded random weights, with a grammar and without. The engine's
 * grammar times are those of its thread alone; the front ends' and the peer's are of the clock, so a busy machine counts against them. Run with `npm run bench:grammar`; `MASHBOX_BENCH_CACHE` names another folder for the model.
 */
import { Effect, Result } from "effect"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { loadavg, tmpdir } from "node:os"
import { basename, join } from "node:path"
import { greedy } from "../src/domain/Sampling.ts"
import { Engine } from "../src/engine/Engine.ts"
import { layerInProcess } from "../src/engine/EngineInProcess.ts"
import { projectRoot } from "../src/engine/EnginePaths.ts"
import * as Gbnf from "../src/grammar/Gbnf.ts"
import { encodeGrammar } from "../src/grammar/IrEncoder.ts"
import * as JsonSchema from "../src/grammar/JsonSchema.ts"
import { compileCalls } from "../src/grammar/tools/CallGrammar.ts"
import * as GgufMetadata from "../src/models/GgufMetadata.ts"
import { quantile } from "./support/client.ts"
import { claudeCodeTools, rigidSchema, subjects } from "./support/grammarSubjects.ts"
import { buildBenches, runBench } from "./support/nativeBench.ts"
import { openXGrammar } from "./support/xgrammar.ts"

/** Microseconds of one grammar in the engine, as `mashbox_grammar_bench` prints them. */
interface Measured {
  readonly compile: ReadonlyArray<number>
  readonly warm: ReadonlyArray<number>
  readonly first: ReadonlyArray<number>
  readonly again: ReadonlyArray<number>
  readonly accept: ReadonlyArray<number>
  readonly outputs: ReadonlyArray<ReadonlyArray<number>>
}

interface Decoded {
  readonly free: number
  readonly text: number
  readonly numbers: number
  readonly rigid: number
}

const rounds = 3
const newTokens = 48
const promptTokens = 16
const frontEndRuns = 9

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
  const times: Array<number> = []
  let bytes: Uint8Array = new Uint8Array()
  for (let run = 0; run < frontEndRuns; run++) {
    const before = performance.now()
    bytes = compile()
    times.push((performance.now() - before) * 1000)
  }
  return { bytes, first: times[0] ?? Number.NaN, usual: median(times) }
}

const ofSchema = (schema: object) => encodeGrammar(Result.getOrThrow(JsonSchema.compile(schema, { closed: true })))
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
  const tools = claudeCodeTools(20)
  const all = subjects(tools)
  const fronts = all.map(({ schema }) => frontEnd(() => ofSchema(schema)))
  const calls = frontEnd(() =>
    encodeGrammar(
      Result.getOrThrow(compileCalls({ syntax: "hermes", sample: "", tools, required: false, parallel: true, token: () => undefined }))
    )
  )
  const { measured, vocabulary } = measureNative([...fronts.map(({ bytes }) => bytes), calls.bytes])
  const { vocabulary: { tokens } } = await Effect.runPromise(GgufMetadata.read(vocabularyFile))
  const peer = await openXGrammar({ tokens, eos: tokens.length - 1 })

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
  const compiles: Array<{ readonly typical: boolean; readonly microseconds: number; readonly worst: number; readonly peer: number }> = []
  for (const [index, { name, peer: withPeer, schema, typical }] of all.entries()) {
    const own = measured[index]
    const front = fronts[index]
    if (own === undefined || front === undefined) throw new Error(`${name} was not measured`)
    const other = withPeer ? await peer.measure(schema, own.outputs) : undefined
    ownMasks.push(...own.first)
    peerMasks.push(...(other?.first ?? []))
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
      ...(other === undefined ? ["not run"] : [`${milliseconds(median(other.compile))} ms`]),
      `${mean(own.first).toFixed(1)} / ${quantile(own.first, 0.99).toFixed(0)} µs`,
      ...(other === undefined ? ["", ""] : [
        `${mean(other.first).toFixed(1)} / ${quantile(other.first, 0.99).toFixed(0)} µs`,
        (mean(other.first) / mean(own.first)).toFixed(1)
      ]),
      `${mean(own.again).toFixed(1)} µs`,
      ...(other === undefined ? ["", ""] : [`${mean(other.again).toFixed(1)} µs`, `${other.refused} of ${own.outputs.length}`])
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
    peerMaskMean: mean(peerMasks),
    peerMaskP99: quantile(peerMasks, 0.99),
    typical: Math.max(...typical.map(({ microseconds }) => microseconds)),
    typicalFirst: Math.max(...typical.map(({ worst }) => worst)),
    peerTypical: Math.max(...typical.map(({ peer: microseconds }) => microseconds)),
    tools: calls.usual + median(called.compile),
    toolsFirst: calls.first + Math.max(...called.compile)
  }
}

const grammars = {
  free: undefined,
  text: ofText("root ::= [^\"\\\\\\x00-\\x1f]{4000,}"),
  numbers: ofText("root ::= ([1-9] [0-9]* [,;]){2000,}"),
  rigid: ofSchema(rigidSchema)
}

/** Tokens per second in each round, one after another so that what else the machine does meets all of them. */
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
  const measured: Array<Decoded> = []
  yield* generate(undefined, 0)
  for (let round = 0; round < rounds; round++) {
    measured.push({
      free: yield* generate(grammars.free, round),
      text: yield* generate(grammars.text, round),
      numbers: yield* generate(grammars.numbers, round),
      rigid: yield* generate(grammars.rigid, round)
    })
  }
  return measured
})

const compareDecoding = async () => {
  mkdirSync(cache, { recursive: true })
  const path = join(cache, `qwen3-0.6b-${basename(vocabularyFile)}`)
  if (!existsSync(path)) runBench("mashbox_random_qwen3", [vocabularyFile, path])
  const load = { path, threads: 0, slots: 1, contextLength: 2048, kvType: "f16", batchTokens: 256 } as const
  const measured = await Effect.runPromise(decode.pipe(Effect.provide(layerInProcess({ load }))))
  const ratio = (kind: keyof Decoded) => median(measured.map((round) => round[kind] / round.free))
  console.log(`\nDecode of ${basename(path)}, medians of ${rounds} rounds, ratios within a round:\n`)
  table(["output", "tokens/s", "to free text"])
  const rate = (kind: keyof Decoded) => median(measured.map((round) => round[kind])).toFixed(1)
  row(["free text", rate("free"), "1"])
  row(["text of a JSON string, nothing forced", rate("text"), ratio("text").toFixed(3)])
  row(["numbers, nothing forced", rate("numbers"), ratio("numbers").toFixed(3)])
  row(["rigid schema, jump-ahead", rate("rigid"), ratio("rigid").toFixed(2)])
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
budget("the same, front end not yet optimized", "5 ms", `${milliseconds(figures.typicalFirst)} ms`, "", figures.typicalFirst <= 5000)
budget("compile, calls of 20 tools", "50 ms", `${milliseconds(figures.tools)} ms`, "", figures.tools <= 50_000)
budget("the same, first time", "50 ms", `${milliseconds(figures.toolsFirst)} ms`, "", figures.toolsFirst <= 50_000)
budget("constrained to free decode", "≥ 0.95", decoded.constrained.toFixed(3), "", decoded.constrained >= 0.95)
budget("rigid schema to free decode", "> 1", decoded.rigid.toFixed(2), "", decoded.rigid > 1)
console.log(`\nLoad average ${load()} at the end.`)
