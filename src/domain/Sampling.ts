/** How the next token is chosen, with every default applied. */
export interface Sampling {
  /** 0: greedy. */
  readonly temperature: number
  /** 0: off. */
  readonly topK: number
  readonly topP: number
  readonly minP: number
  readonly repetitionPenalty: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  /** Last tokens, prompt and output together, that the penalties look at. */
  readonly repetitionWindow: number
  /** 0 ≤ seed < 2^53; with the same seed and prompt the same tokens come out. */
  readonly seed: number
  readonly logitBias: ReadonlyArray<readonly [token: number, bias: number]>
}

export const defaultRepetitionWindow = 256

/** What holds where a request says nothing. */
export type SamplingDefaults = Omit<Sampling, "seed" | "logitBias">

export const greedyDefaults: SamplingDefaults = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repetitionWindow: defaultRepetitionWindow
}

export const greedy: Sampling = { ...greedyDefaults, seed: 0, logitBias: [] }

/** Under the names that requests use. */
export const wireSampling = (sampling: Partial<SamplingDefaults>): Readonly<Record<string, number>> => {
  const named = {
    temperature: sampling.temperature,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    repetition_penalty: sampling.repetitionPenalty,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    rep_window: sampling.repetitionWindow
  }
  return Object.fromEntries(Object.entries(named).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]))
}
