import type * as XGrammar from "@mlc-ai/web-xgrammar"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { projectRoot } from "../../src/engine/EnginePaths.ts"
import type { Vocabulary } from "../../src/models/ModelMetadata.ts"

/** Costs of one grammar in microseconds. */
export interface PeerMeasured {
  readonly compile: ReadonlyArray<number>
  /** Masks along the outputs: each state met for the first time, and once more. */
  readonly first: ReadonlyArray<number>
  readonly again: ReadonlyArray<number>
  readonly accept: ReadonlyArray<number>
  /** Outputs that it does not take to their end. */
  readonly refused: number
}

export interface Peer {
  readonly milliseconds: number
  readonly measure: (schema: object, outputs: ReadonlyArray<ReadonlyArray<number>>) => Promise<PeerMeasured>
}

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

const compiles = 3
/** Milliseconds of compiling after which it is not compiled again. */
const patience = 1000

const microseconds = () => performance.now() * 1000

/** `@mlc-ai/web-xgrammar` over this byte-level vocabulary. */
export const openXGrammar = async ({ eos, tokens }: Pick<Vocabulary, "tokens"> & { readonly eos: number }): Promise<Peer> => {
  const { GrammarCompiler, GrammarMatcher, TokenizerInfo } = load()
  await TokenizerInfo.createTokenizerInfo(["a", "b"], "raw", false, 2, 1)
  const started = performance.now()
  const info = await TokenizerInfo.createTokenizerInfo([...tokens], "byte_level", false, tokens.length, eos)
  const milliseconds = performance.now() - started
  const compiler = await GrammarCompiler.createGrammarCompiler(info, false)

  const measure = async (schema: object, outputs: ReadonlyArray<ReadonlyArray<number>>): Promise<PeerMeasured> => {
    const text = JSON.stringify(schema)
    const compileOnce = async () => {
      const before = microseconds()
      const grammar = await compiler.compileJSONSchema(text, false, -1, [", ", ": "], true)
      return { grammar, taken: microseconds() - before }
    }
    let compiled = await compileOnce()
    const compile = [compiled.taken]
    while (compile.length < compiles && compiled.taken < patience * 1000) {
      compiled.grammar.dispose()
      compiled = await compileOnce()
      compile.push(compiled.taken)
    }
    const accept: Array<number> = []
    let refused = 0
    const walk = async () => {
      const masks: Array<number> = []
      refused = 0
      for (const output of outputs) {
        const matcher = await GrammarMatcher.createGrammarMatcher(compiled.grammar)
        for (const token of output) {
          const before = microseconds()
          await matcher.getNextTokenBitmask()
          const between = microseconds()
          masks.push(between - before)
          if (!matcher.acceptToken(token)) {
            refused++
            break
          }
          accept.push(microseconds() - between)
        }
        matcher.dispose()
      }
      return masks
    }
    const first = await walk()
    const again = await walk()
    compiled.grammar.dispose()
    return { compile, first, again, accept, refused }
  }
  return { milliseconds, measure }
}
