import { parentPort, workerData } from "node:worker_threads"
import { unpack } from "./PackedVocabulary.ts"
import { preTokenizerOf } from "./PreTokenizers.ts"
import * as TokenizerJson from "./TokenizerJson.ts"

// Entry of the thread that encodes long texts: one message with texts in, one with their ids out. The vocabulary has been checked.
const vocabulary = unpack(workerData)
const tokenizer = TokenizerJson.make(vocabulary, preTokenizerOf(vocabulary), TokenizerJson.textIds(vocabulary).ids)

parentPort?.on("message", (texts: ReadonlyArray<string>) => {
  const ids = texts.map((text) => TokenizerJson.encode(tokenizer, text))
  parentPort?.postMessage(ids, ids.map(({ buffer }) => buffer))
})
