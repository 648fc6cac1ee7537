/**
 * An addon without an engine, for the tests of everything between the server and the addon. The "model" is a JSON file:
 *
 * - `crashes`: that many first starts end in SIGKILL while loading, with a line on stderr
 * - `fail`: `{code, message, subject}` that the load throws; `failFrom` is the first start that does
 * - `never`: the load does not end
 * - `ready`: replaces the model's description
 * - `stuck`: `close` does not return
 *
 * The first token of a prompt says what becomes of the request; see `behaviours`. Each start adds a line to `<model>.starts`, each close one to `<model>.closed`.
 */
import { appendFileSync, readFileSync } from "node:fs"
import { FrameWriter } from "../../../src/engine/Frames.ts"

export const info = () => ({ version: "fake", isa: "scalar", threads: 1, cuda: { built: false, reason: "fake", devices: [] } })

const description = {
  architecture: "fake",
  vocabularySize: 256,
  layers: 1,
  contextLength: 128,
  trainedContextLength: 128,
  slots: 8,
  isa: "scalar",
  threads: 1,
  memory: { weights: 0, kvCache: 0, scratch: 0 },
  experts: null
}

export const load = async (options, onProgress, onFrame) => {
  const script = JSON.parse(readFileSync(options.path, "utf8"))
  appendFileSync(`${options.path}.starts`, `${process.pid}\n`)
  const start = readFileSync(`${options.path}.starts`, "utf8").trim().split("\n").length
  onProgress(0.5)
  if (start <= (script.crashes ?? 0)) {
    process.stderr.write("out of patience\n    at somewhere (file.js:1:1)\n")
    process.kill(process.pid, "SIGKILL")
  }
  if (script.fail !== undefined && start >= (script.failFrom ?? 1)) throw Object.assign(new Error(script.fail.message), script.fail)
  if (script.never === true) await new Promise(() => setInterval(() => {}, 1e6))
  onProgress(1)

  const writer = new FrameWriter()
  const cancelled = []
  const counts = (request, generatedTokens) => ({
    promptTokens: request.tokens.length,
    cachedTokens: 0,
    generatedTokens,
    queueMs: 1,
    promptMs: 2,
    generationMs: 3
  })
  const answer = (request, tokens) => {
    writer.progress(request.id, request.tokens.length, request.tokens.length)
    for (const token of tokens) writer.token(request.id, token)
    writer.done(request.id, "stop", counts(request, tokens.length))
    onFrame(writer.take())
  }

  const behaviours = {
    /** 1: the prompt comes back, and where the API key is known, a 99. */
    1: (request) => answer(request, [...request.tokens, ...(process.env.MASHBOX_API_KEY === undefined ? [] : [99])]),
    /** 2: one token, and nothing more until it is cancelled. */
    2: (request) => {
      writer.token(request.id, 2)
      onFrame(writer.take())
    },
    /** 3: as many tokens as it may, each in a frame of its own, all in one turn of the event loop. */
    3: (request) => {
      for (let i = 0; i < request.maxTokens; i++) {
        writer.token(request.id, i)
        onFrame(writer.take())
      }
      answer(request, [])
    },
    /** 4: the process is gone. */
    4: () => process.kill(process.pid, "SIGKILL"),
    /** 5: bytes that are no frame. */
    5: () => onFrame(new Uint8Array(64).fill(0x7f)),
    /** 6: an uncaught JavaScript error. */
    6: () =>
      setImmediate(() => {
        throw new Error("no more ideas")
      }),
    /** 7: refused at once. */
    7: () => {
      throw Object.assign(new Error("the prompt is too long"), { code: "rejected", subject: "tokens" })
    },
    /** 8: fails while it runs. */
    8: (request) => {
      writer.failed(request.id, "out_of_memory", "no block left")
      onFrame(writer.take())
    },
    /** 9: the ids that were cancelled. */
    9: (request) => answer(request, cancelled),
    /** 10: large frames, `maxTokens` MB of them. */
    10: (request) => {
      for (let i = 0; i < request.maxTokens; i++) {
        for (let j = 0; j < 16; j++) writer.failed(request.id, "invalid", "x".repeat(62_500))
        onFrame(writer.take())
      }
    }
  }

  return {
    model: { ...description, ...script.ready },
    submit: (request) => behaviours[request.tokens[0]](request),
    cancel: (id) => {
      cancelled.push(id)
      writer.done(id, "cancelled", counts({ tokens: [] }, 0))
      onFrame(writer.take())
    },
    stats: () => ({ running: 0, waiting: 0, freeBlocks: 0, totalBlocks: 0, steps: 0 }),
    close: () => {
      appendFileSync(`${options.path}.closed`, "closed\n")
      while (script.stuck === true);
    }
  }
}
