import { Effect, Schema } from "effect"
import { execFile } from "node:child_process"
import type { EngineError } from "../domain/Errors.ts"
import { loadFailed } from "./EngineErrors.ts"
import { inspectorPath } from "./EnginePaths.ts"
import type { NativeInspection, NativeLoadOptions } from "./Native.ts"

const Found = Schema.Struct({
  architecture: Schema.String,
  layers: Schema.Int,
  predictionBlocks: Schema.Int,
  vocabularySize: Schema.Int,
  trainedContextLength: Schema.Int,
  contextLength: Schema.Int,
  slots: Schema.Int,
  memory: Schema.Struct({ weights: Schema.Finite, kvCache: Schema.Finite, scratch: Schema.Finite }),
  availableMemory: Schema.Finite,
  largestContext: Schema.Int,
  largestSlots: Schema.Int,
  fits: Schema.Boolean
})

const Failure = Schema.Struct({
  code: Schema.optionalKey(Schema.String),
  message: Schema.String,
  subject: Schema.optionalKey(Schema.String)
})

const Answer = Schema.fromJsonString(Schema.Union([Schema.Struct({ found: Found }), Schema.Struct({ failure: Failure })]))

/** A header is read in seconds, however large the model. */
const timeoutMs = 60_000

/** What loading a model would take, as the engine plans it, asked of the addon in another process. Fails as loading would before it reads the weights. */
export const inspect = (options: NativeLoadOptions): Effect.Effect<NativeInspection, EngineError> =>
  Effect.gen(function*() {
    const output = yield* Effect.callback<string, EngineError>((resume) => {
      const child = execFile(
        process.execPath,
        [inspectorPath, JSON.stringify(options)],
        { timeout: timeoutMs, maxBuffer: 1 << 20 },
        (error, stdout) => {
          if (error === null) resume(Effect.succeed(stdout))
          else {
            const how = error.signal ?? `status ${error.code ?? "unknown"}`
            resume(Effect.fail(loadFailed({ code: undefined, message: `the engine ended (${how}) on this file`, subject: undefined })))
          }
        }
      )
      return Effect.sync(() => child.kill())
    })
    const answer = yield* Schema.decodeEffect(Answer)(output).pipe(
      Effect.mapError(() => loadFailed({ code: undefined, message: "the native addon is not of this version", subject: "addon" }))
    )
    if ("found" in answer) return answer.found
    const { code, message, subject } = answer.failure
    return yield* loadFailed({ code, message, subject })
  })
