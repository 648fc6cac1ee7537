import { Result } from "effect"
import { parentPort, workerData } from "node:worker_threads"
import { unpack } from "../tokenizer/PackedVocabulary.ts"
import { abandon, type Paused, workFor } from "../tokenizer/Paused.ts"
import { PromptEncoder } from "../tokenizer/PromptEncoder.ts"
import { SectionCache } from "../tokenizer/SectionCache.ts"
import type { RenderedPrompt } from "../tokenizer/Tokenizer.ts"
import { ChatRenderer, refusal } from "./ChatRenderer.ts"
import { Assembly, type FromThread, type ThreadData, type ToThread, unitsPerParcel } from "./PromptThread.ts"
import { noReasoning, reasoningState } from "./Reasoning.ts"
import { renderText } from "./TextPrompts.ts"

// Entry of the thread that renders and encodes long prompts: a few at a time, in turns.

const cacheBytes = 32 * 1024 * 1024

/** Milliseconds that one prompt is worked on before the next has its turn. */
const turnMs = 5

const { template, vocabulary: packed }: ThreadData = workerData
const encoder = Result.getOrThrow(PromptEncoder.make(unpack(packed)))
const cache = new SectionCache(cacheBytes)
let renderer: ChatRenderer | undefined

const answer = (message: FromThread, transfer: ReadonlyArray<ArrayBuffer> = []) => parentPort?.postMessage(message, transfer)

const rendered = ({ prompt, work }: Assembly): RenderedPrompt | { readonly refused: string } => {
  if (prompt._tag === "Text") return renderText(prompt, template.specialTexts) ?? { refused: "there are no tokens for a suffix" }
  try {
    return (renderer ??= new ChatRenderer(template)).render(prompt.conversation, work.now)
  } catch (cause) {
    return { refused: refusal(cause) }
  }
}

const work = function*(job: number, assembly: Assembly): Paused<void> {
  const prompt = rendered(assembly)
  yield
  if ("refused" in prompt) return answer({ job, refused: prompt.refused })
  if (assembly.work.want === "text") {
    let at = 0
    do {
      const text = prompt.text.slice(at, at += unitsPerParcel)
      answer({ job, text, rest: at < prompt.text.length })
      yield
    } while (at < prompt.text.length)
    return
  }
  const tokens = yield* encoder.encode(prompt, cache, assembly.work.tenant)
  answer({ job, tokens, reasoning: assembly.prompt._tag === "Chat" ? reasoningState(prompt, renderer?.reasoning) : noReasoning }, [
    tokens.buffer
  ])
}

const assemblies = new Map<number, Assembly>()
const working = new Map<number, Paused<void>>()
let turning = false

const turn = () => {
  const [next] = working
  if (next === undefined) {
    turning = false
    return
  }
  const [job, paused] = next
  working.delete(job)
  if (workFor(paused, turnMs) === undefined) working.set(job, paused)
  setImmediate(turn)
}

parentPort?.on("message", ({ job, ...parcel }: ToThread) => {
  const assembly = assemblies.get(job)
  if ("begin" in parcel) assemblies.set(job, new Assembly(parcel.begin))
  else if ("cancel" in parcel) {
    assemblies.delete(job)
    const paused = working.get(job)
    working.delete(job)
    if (paused !== undefined) abandon(paused)
  } else if ("end" in parcel) {
    assemblies.delete(job)
    if (assembly === undefined) return
    working.set(job, work(job, assembly))
    if (!turning) {
      turning = true
      setImmediate(turn)
    }
  } else assembly?.add(parcel)
})
