import { Result } from "effect"
import { parentPort, workerData } from "node:worker_threads"
import type { FromThread, GrammarThreadData } from "./GrammarThread.ts"
import { encodeGrammar } from "./IrEncoder.ts"
import { compileCalls } from "./tools/CallGrammar.ts"

// Entry of the thread that compiles large grammars.

const { tokens }: GrammarThreadData = workerData

const answer = (message: FromThread, transfer: ReadonlyArray<ArrayBuffer> = []) => parentPort?.postMessage(message, transfer)

parentPort?.on("message", (work: string) => {
  const compiled = compileCalls({ ...JSON.parse(work), token: (text) => tokens.get(text) })
  if (Result.isFailure(compiled)) {
    const { message, path, reason } = compiled.failure
    return answer({ refused: { reason, message, path } })
  }
  const bytes = new Uint8Array(encodeGrammar(compiled.success))
  answer({ bytes }, [bytes.buffer])
})
