import { Result } from "effect"
import { InvalidRequest } from "../domain/Errors.ts"
import { greedyDefaults, type Sampling, type SamplingDefaults } from "../domain/Sampling.ts"

/** The decoded `samplingFields` of `schema/openai/Common.ts`. */
interface SamplingFields {
  readonly temperature?: number
  readonly top_p?: number
  readonly top_k?: number
  readonly min_p?: number
  readonly seed?: number
  readonly stop?: string | ReadonlyArray<string>
  readonly stop_sequences?: ReadonlyArray<string>
  readonly repetition_penalty?: number
  readonly rep_pen?: number
  readonly rep_window?: number
  readonly frequency_penalty?: number
  readonly presence_penalty?: number
  readonly logit_bias?: Readonly<Record<string, number>>
  readonly max_completion_tokens?: number
  readonly max_tokens?: number
  readonly max_output_tokens?: number
}

/** Clients send signed 64-bit seeds; the engine's are unsigned 53-bit. */
const engineSeed = (seed: number) => seed < 0 ? seed + Number.MAX_SAFE_INTEGER + 1 : seed

/** What holds where a request is silent. */
export interface SamplingContext {
  /** 0 ≤ seed < 2^53. */
  readonly randomSeed: number
  /** Absent: greedy, as the API documents. */
  readonly samplingDefaults?: SamplingDefaults
}

/** Sampling fields of an OpenAI request, every default applied. */
export const sampling = (
  fields: SamplingFields,
  { randomSeed, samplingDefaults: defaults = greedyDefaults }: SamplingContext
): Result.Result<Sampling, InvalidRequest> => {
  const logitBias: Array<readonly [number, number]> = []
  for (const [token, bias] of Object.entries(fields.logit_bias ?? {})) {
    if (!/^\d{1,9}$/.test(token)) {
      return Result.fail(
        new InvalidRequest({ message: "logit_bias: keys must be token ids, written as decimal numbers", field: "logit_bias" })
      )
    }
    logitBias.push([Number(token), bias])
  }
  return Result.succeed({
    temperature: fields.temperature ?? defaults.temperature,
    topK: fields.top_k ?? defaults.topK,
    topP: fields.top_p ?? defaults.topP,
    minP: fields.min_p ?? defaults.minP,
    repetitionPenalty: fields.repetition_penalty ?? fields.rep_pen ?? defaults.repetitionPenalty,
    frequencyPenalty: fields.frequency_penalty ?? defaults.frequencyPenalty,
    presencePenalty: fields.presence_penalty ?? defaults.presencePenalty,
    repetitionWindow: fields.rep_window ?? defaults.repetitionWindow,
    seed: fields.seed === undefined || fields.seed === -1 ? randomSeed : engineSeed(fields.seed),
    logitBias
  })
}

/** `stop`, else `stop_sequences`. */
export const stopStrings = (fields: SamplingFields): ReadonlyArray<string> =>
  fields.stop === undefined
    ? fields.stop_sequences ?? []
    : typeof fields.stop === "string"
    ? [fields.stop]
    : fields.stop

/** The newest of the three names wins. */
export const maxTokens = (fields: SamplingFields): number | undefined =>
  fields.max_completion_tokens ?? fields.max_tokens ?? fields.max_output_tokens
