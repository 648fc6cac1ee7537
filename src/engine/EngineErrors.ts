import { EngineError } from "../domain/Errors.ts"
import type { NativeFailure } from "./NativeModule.ts"

const error = (reason: EngineError["reason"], { code, message, subject }: NativeFailure): EngineError =>
  new EngineError({
    reason,
    message,
    ...(code === undefined ? {} : { code }),
    ...(subject === undefined ? {} : { subject })
  })

/** A request that failed while it ran, or was refused. */
export const failureToError = (failure: NativeFailure): EngineError => error(reasons[failure.code ?? ""] ?? "Internal", failure)

/** `too_complex` and `dead_end` are about the grammar of a request, which its client asked for. */
const reasons: Readonly<Record<string, EngineError["reason"]>> = {
  out_of_memory: "OutOfMemory",
  rejected: "Rejected",
  too_complex: "Rejected",
  dead_end: "DeadEnd"
}

/** A request that the engine did not accept: a wrong argument has the code "invalid", which is no fault of the engine's. */
export const rejection = (failure: NativeFailure): EngineError =>
  failure.code === "invalid" ? error("Rejected", failure) : failureToError(failure)

/** A model that did not load, for whatever reason; `code` says which. */
export const loadFailed = (failure: NativeFailure): EngineError => error("LoadFailed", failure)

export const workerLost = (message: string): EngineError => error("WorkerLost", { code: undefined, message, subject: undefined })
