import { Context, type Effect } from "effect"
import type { EngineError } from "../domain/Errors.ts"
import type { Sampling } from "../domain/Sampling.ts"
import type { EngineLogprobs } from "./Logprobs.ts"
import type { NativeModelInfo, PassageLimit } from "./Native.ts"

/** What one generation asks of an engine: token ids in, token ids out. */
export interface EngineRequest {
  readonly tokens: Int32Array
  readonly maxTokens: number
  readonly stopTokens: Int32Array
  /** No stop token is drawn before this many tokens. Default 0. */
  readonly minTokens?: number
  /** Report the log probability of every token and of this many (≤ 20) of the likeliest; absent: none. */
  readonly topLogprobs?: number
  /** Of the reasoning. */
  readonly limit?: PassageLimit
  /** The IR (src/grammar) that the output keeps to; absent: none. */
  readonly grammar?: Uint8Array
  /** What is neither content nor free text in the grammar is drawn as at temperature 0. Default false. */
  readonly greedySyntax?: boolean
  readonly sampling: Sampling
}

/** How a generation ended, with the engine's own counts and milliseconds. */
export interface EngineResult {
  readonly reason: "stop" | "length"
  /** The stop token that ended the output, where one did; it does not count as generated. */
  readonly stopToken?: number
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly generatedTokens: number
  readonly queueMs: number
  readonly promptMs: number
  readonly generationMs: number
}

/** Called synchronously, once per engine event; must not throw and must not block. */
export interface EngineListener {
  readonly onToken: (token: number, logprobs?: EngineLogprobs) => void
  readonly onProgress?: (processed: number, total: number) => void
}

export type EngineStatus =
  | { readonly _tag: "Loading"; readonly progress: number; readonly workerPid: number | undefined; readonly workerRestarts: number }
  | {
    readonly _tag: "Ready"
    readonly model: NativeModelInfo
    /** The share of the KV blocks in use, 0 to 1; undefined where the engine does not say. */
    readonly cacheUse: number | undefined
    readonly workerPid: number | undefined
    readonly workerRestarts: number
  }
  /** For good: no further start is tried. */
  | { readonly _tag: "Failed"; readonly error: EngineError; readonly workerPid: undefined; readonly workerRestarts: number }

/**
 * The engine: token ids in, token ids out. Layers: `layerProcess` (the addon in a supervised child process), `layerInProcess` (the addon
 * in this process), `layerScripted` (tests).
 */
export class Engine extends Context.Service<Engine, {
  readonly status: Effect.Effect<EngineStatus>
  /** Waits for the model; fails when it can never load. */
  readonly ready: Effect.Effect<NativeModelInfo, EngineError>
  /**
   * Runs one generation. Interrupting it cancels the generation in the engine and frees its slot. A `WorkerLost` failure may be sent
   * again by the caller: the next call waits until the restarted worker is ready.
   */
  readonly generate: (request: EngineRequest, listener: EngineListener) => Effect.Effect<EngineResult, EngineError>
}>()("mashbox/engine/Engine") {}
