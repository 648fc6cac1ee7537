import type { SamplingDefaults } from "../domain/Sampling.ts"

export interface TensorInfo {
  readonly name: string
  /** Name of its storage format, for example "Q4_K". */
  readonly type: string
  readonly elements: number
  readonly bytes: number
}

/** What the server process needs to know of a GGUF file; read without loading a tensor. */
export interface ModelMetadata {
  readonly path: string
  /** The id that clients see: `general.name` made URL-safe, else the file's name without `.gguf`. */
  readonly id: string
  readonly architecture: string
  readonly fileBytes: number
  readonly tensorBytes: number
  readonly parameters: number
  /** 0 where the file has no key of its architecture at all, which the engine refuses. */
  readonly contextLength: number
  readonly chatTemplate: string | undefined
  /** `general.sampling.*`: how the model's makers want it sampled, as far as the file says. */
  readonly sampling: Partial<SamplingDefaults>
  /** Files that the model is split into. */
  readonly parts: number
  readonly tensors: ReadonlyArray<TensorInfo>
  readonly vocabulary: Vocabulary
}

/** `tokenizer.*` of a GGUF file, checked for consistency. */
export interface Vocabulary {
  /** "gpt2" (byte-level BPE), "llama" (SentencePiece BPE), … */
  readonly model: string
  readonly pre: string | undefined
  readonly tokens: ReadonlyArray<string>
  /** 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte */
  readonly types: Int32Array
  readonly scores: Float32Array | undefined
  /** "left right" */
  readonly merges: ReadonlyArray<string>
  readonly bosId: number | undefined
  readonly eosId: number | undefined
  readonly eotId: number | undefined
  readonly eomId: number | undefined
  readonly unknownId: number | undefined
  readonly addBos: boolean | undefined
  readonly addSpacePrefix: boolean | undefined
}
