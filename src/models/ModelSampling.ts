import type { SamplingDefaults } from "../domain/Sampling.ts"
import { modelError } from "./GgufCursor.ts"
import type { GgufFields } from "./GgufFields.ts"

/** What requests may ask for, which holds for defaults as well. */
export const samplingBounds: Readonly<Record<keyof SamplingDefaults, (value: number) => boolean>> = {
  temperature: (value) => value >= 0 && value <= 4,
  topK: (value) => Number.isInteger(value) && value >= 0 && value <= 2 ** 31 - 1,
  topP: (value) => value > 0 && value <= 1,
  minP: (value) => value >= 0 && value < 1,
  repetitionPenalty: (value) => value > 0 && value <= 100,
  frequencyPenalty: (value) => value >= -2 && value <= 2,
  presencePenalty: (value) => value >= -2 && value <= 2,
  repetitionWindow: (value) => Number.isInteger(value) && value >= 0 && value <= 2 ** 31 - 1
}

// llama.cpp's names (gguf-py, Keys.General); the rest of them are of samplers that there are none of here.
const keys = [
  ["temp", "temperature"],
  ["top_k", "topK"],
  ["top_p", "topP"],
  ["min_p", "minP"],
  ["penalty_repeat", "repetitionPenalty"],
  ["penalty_freq", "frequencyPenalty"],
  ["penalty_present", "presencePenalty"],
  ["penalty_last_n", "repetitionWindow"]
] as const

/** Decimals that a float32 holds. */
const digits = 7

/** `general.sampling.*`; throws `ModelError`. */
export const readSampling = (fields: GgufFields): Partial<SamplingDefaults> => {
  const found: { -readonly [K in keyof SamplingDefaults]?: number } = {}
  for (const [name, field] of keys) {
    const key = `general.sampling.${name}`
    const value = fields.number(key)
    if (value === undefined) continue
    // llama.cpp's −1: all of the context.
    const meant = field === "repetitionWindow" && value === -1 ? 2 ** 31 - 1 : Number(value.toPrecision(digits))
    if (!samplingBounds[field](meant)) throw modelError("Invalid", `${key}: ${value} is no value that can be sampled with`, key)
    found[field] = meant
  }
  return found
}
