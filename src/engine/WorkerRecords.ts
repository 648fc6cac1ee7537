import { Result, Schema } from "effect"
import type { EngineError } from "../domain/Errors.ts"
import { loadFailed } from "./EngineErrors.ts"
import type { NativeModelInfo } from "./Native.ts"
import { ProtocolError } from "./Packets.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const ModelInfo = Schema.Struct({
  architecture: Schema.String,
  vocabularySize: Count,
  layers: Count,
  contextLength: Count,
  trainedContextLength: Count,
  slots: Count,
  isa: Schema.String,
  threads: Count,
  memory: Schema.Struct({ weights: Count, kvCache: Count, scratch: Count }),
  experts: Schema.NullOr(Schema.Struct({ kernelSites: Count, exactSites: Count, exactReasons: Schema.Array(Schema.String) }))
})

const LoadFailure = Schema.Struct({
  code: Schema.optionalKey(Schema.String),
  message: Schema.String,
  subject: Schema.optionalKey(Schema.String)
})

const decodeModelInfo = Schema.decodeUnknownResult(Schema.fromJsonString(ModelInfo))
const decodeLoadFailure = Schema.decodeUnknownResult(Schema.fromJsonString(LoadFailure))

/** @throws ProtocolError */
export const readModelInfo = (json: string): NativeModelInfo => {
  const result = decodeModelInfo(json)
  if (Result.isFailure(result)) throw new ProtocolError("the description of the loaded model cannot be read", { cause: result.failure })
  return result.success
}

/** @throws ProtocolError */
export const readLoadFailure = (json: string): EngineError => {
  const result = decodeLoadFailure(json)
  if (Result.isFailure(result)) throw new ProtocolError("the reason of a failed load cannot be read", { cause: result.failure })
  const { code, message, subject } = result.success
  return loadFailed({ code, message, subject })
}
