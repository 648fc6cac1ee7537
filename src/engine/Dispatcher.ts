import { Effect } from "effect"
import { EngineError } from "../domain/Errors.ts"
import type { EngineListener, EngineRequest, EngineResult } from "./Engine.ts"
import { failureToError, rejection } from "./EngineErrors.ts"
import type { DoneCounts, DoneReason, NativeErrorCode, RequestHandler } from "./Frames.ts"
import type { EngineLogprobs } from "./Logprobs.ts"
import type { NativeSubmit } from "./Native.ts"
import { nativeFailure } from "./NativeModule.ts"

/** Where a dispatcher's requests go: the addon in this process, or a worker's stdin. `submit` throws what the engine refuses at once. */
export interface EnginePort {
  readonly submit: (request: NativeSubmit) => void
  readonly cancel: (id: number) => void
}

interface InFlight {
  readonly listener: EngineListener
  readonly resume: (outcome: Effect.Effect<EngineResult, EngineError>) => void
  stopToken?: number
}

/** Stands for a request that nobody listens to any more until the engine has let go of its id. */
const abandoned = Symbol("abandoned")

/**
 * The requests of one running engine: gives them ids, and takes what the engine's frames say to their listeners. Ids are u32 and
 * not used again before the engine has answered for them.
 */
export class Dispatcher implements RequestHandler {
  private readonly port: EnginePort
  private readonly inFlight = new Map<number, InFlight | typeof abandoned>()
  private readonly maxId: number
  private nextId = 1
  private closed: EngineError | undefined
  private share: number | undefined

  /** Ids go from 1 to `maxId` and round again. */
  constructor(port: EnginePort, maxId = 0xffff_ffff) {
    this.port = port
    this.maxId = maxId
  }

  /** Runs one generation; interruption cancels it in the engine. The listener is not called after the effect has ended. */
  generate(request: EngineRequest, listener: EngineListener): Effect.Effect<EngineResult, EngineError> {
    return Effect.callback((resume) => {
      if (this.closed !== undefined) return resume(Effect.fail(this.closed))
      const id = this.takeId()
      this.inFlight.set(id, { listener, resume })
      try {
        this.port.submit(toSubmit(id, request))
      } catch (thrown) {
        this.inFlight.delete(id)
        return resume(Effect.fail(rejection(nativeFailure(thrown))))
      }
      return Effect.sync(() => this.abandon(id))
    })
  }

  /** Fails what is in flight and all that comes later. */
  close(error: EngineError): void {
    this.closed ??= error
    const outcome = Effect.fail(error)
    const requests = [...this.inFlight.values()]
    this.inFlight.clear() // before the first `resume`, which runs its fiber at once
    for (const request of requests) {
      if (request !== abandoned) request.resume(outcome)
    }
  }

  /** Requests that the engine has not answered for. */
  get size(): number {
    return this.inFlight.size
  }

  token(id: number, token: number, logprobs?: EngineLogprobs): void {
    const request = this.inFlight.get(id)
    if (request === undefined || request === abandoned) return
    try {
      request.listener.onToken(token, logprobs)
    } catch (defect) {
      this.drop(id, request, defect)
    }
  }

  stopToken(id: number, token: number): void {
    const request = this.inFlight.get(id)
    if (request !== undefined && request !== abandoned) request.stopToken = token
  }

  progress(id: number, processed: number, total: number): void {
    const request = this.inFlight.get(id)
    if (request === undefined || request === abandoned) return
    try {
      request.listener.onProgress?.(processed, total)
    } catch (defect) {
      this.drop(id, request, defect)
    }
  }

  done(id: number, reason: DoneReason, counts: DoneCounts): void {
    const request = this.inFlight.get(id)
    const stopToken = request === undefined || request === abandoned ? undefined : request.stopToken
    this.end(
      id,
      reason === "cancelled"
        ? Effect.fail(new EngineError({ reason: "Internal", message: "the engine cancelled the generation by itself" }))
        : Effect.succeed({ reason, ...(stopToken === undefined ? {} : { stopToken }), ...counts })
    )
  }

  failed(id: number, code: NativeErrorCode, message: string, subject?: string): void {
    this.end(id, Effect.fail(failureToError({ code, message, subject })))
  }

  blocks(used: number, total: number, windowUsed: number, windowTotal: number): void {
    this.share = Math.max(used / Math.max(total, 1), windowUsed / Math.max(windowTotal, 1))
  }

  /** The share of the KV blocks that are in use, 0 to 1, of the kind that is fuller; undefined before the engine has said. */
  get cacheUse(): number | undefined {
    return this.share
  }

  private end(id: number, outcome: Effect.Effect<EngineResult, EngineError>): void {
    const request = this.inFlight.get(id)
    this.inFlight.delete(id)
    if (request !== undefined && request !== abandoned) request.resume(outcome)
  }

  /** A listener threw: a bug of its owner, which must not reach the other requests of the step. */
  private drop(id: number, request: InFlight, defect: unknown): void {
    this.abandon(id)
    request.resume(Effect.die(defect))
  }

  private abandon(id: number): void {
    if (!this.inFlight.has(id)) return
    this.inFlight.set(id, abandoned)
    this.port.cancel(id)
  }

  private takeId(): number {
    let id = this.nextId
    while (this.inFlight.has(id)) id = this.following(id)
    this.nextId = this.following(id)
    return id
  }

  private following(id: number): number {
    return id === this.maxId ? 1 : id + 1
  }
}

const toSubmit = (
  id: number,
  { grammar, greedySyntax, limit, maxTokens, minTokens, sampling, stopTokens, tokens, topLogprobs }: EngineRequest
): NativeSubmit => ({
  id,
  tokens,
  maxTokens,
  stopTokens,
  ...(minTokens === undefined ? {} : { minTokens }),
  ...(topLogprobs === undefined ? {} : { topLogprobs }),
  ...(limit === undefined ? {} : { limit }),
  ...(grammar === undefined ? {} : { grammar }),
  ...(greedySyntax === true ? { greedySyntax } : {}),
  temperature: sampling.temperature,
  topK: sampling.topK,
  topP: sampling.topP,
  minP: sampling.minP,
  repetitionPenalty: sampling.repetitionPenalty,
  frequencyPenalty: sampling.frequencyPenalty,
  presencePenalty: sampling.presencePenalty,
  repetitionWindow: sampling.repetitionWindow,
  seed: sampling.seed,
  logitBias: sampling.logitBias
})
