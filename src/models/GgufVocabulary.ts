import { modelError, printable } from "./GgufCursor.ts"
import { type GgufFields, requireField } from "./GgufFields.ts"
import type { Vocabulary } from "./ModelMetadata.ts"

const models: ReadonlyArray<string> = ["gpt2", "llama", "gemma4"]

/** Token types of a file, 0 meaning "undefined", are at most this. */
const lastTokenType = 6

/** `tokenizer.ggml.*`, checked for consistency; throws `ModelError`. */
export const readVocabulary = (fields: GgufFields): Vocabulary => {
  const model = requireField("tokenizer.ggml.model", fields.string("tokenizer.ggml.model"))
  if (!models.includes(model)) {
    throw modelError(
      "Unsupported",
      `tokenizer.ggml.model: "${printable(model)}" is no kind of tokenizer that is supported; ${models.join(", ")} are`,
      "tokenizer.ggml.model"
    )
  }
  const tokens = requireField("tokenizer.ggml.tokens", fields.strings("tokenizer.ggml.tokens"))
  if (tokens.length === 0) throw modelError("Invalid", "tokenizer.ggml.tokens: there are no tokens", "tokenizer.ggml.tokens")
  const spm = model === "llama"
  const scores = fields.floats("tokenizer.ggml.scores")
  const merges = fields.strings("tokenizer.ggml.merges")
  if (spm) requireField("tokenizer.ggml.scores", scores)
  else requireField("tokenizer.ggml.merges", merges)
  const id = (name: string, fallback?: number) => tokenId(fields, `tokenizer.ggml.${name}_token_id`, tokens.length) ?? fallback
  return {
    model,
    pre: fields.string("tokenizer.ggml.pre"),
    tokens,
    types: tokenTypes(fields, tokens.length),
    scores: sameLength("tokenizer.ggml.scores", scores, tokens.length),
    merges: checkedMerges(spm ? [] : merges ?? []),
    // SentencePiece files may leave out ids that have their places by convention (sentencepiece's trainer: unk 0, bos 1, eos 2).
    bosId: id("bos", spm && tokens.length > 1 ? 1 : undefined),
    eosId: id("eos", spm && tokens.length > 2 ? 2 : undefined),
    eotId: id("eot"),
    eomId: id("eom"),
    unknownId: id("unknown", spm ? 0 : undefined),
    addBos: fields.boolean("tokenizer.ggml.add_bos_token"),
    addSpacePrefix: fields.boolean("tokenizer.ggml.add_space_prefix")
  }
}

const tokenId = (fields: GgufFields, key: string, count: number): number | undefined => {
  const id = fields.integer(key)
  if (id === undefined || (id >= 0 && id < count)) return id
  throw modelError("Inconsistent", `${key}: ${id} is no id of the ${count} tokens`, key)
}

const tokenTypes = (fields: GgufFields, count: number): Int32Array => {
  const key = "tokenizer.ggml.token_type"
  const types = sameLength(key, fields.integers(key), count) ?? new Int32Array(count).fill(1)
  for (const type of types) {
    if (type < 0 || type > lastTokenType) throw modelError("Invalid", `${key}: ${type} is no token type`, key)
  }
  return types
}

const checkedMerges = (merges: ReadonlyArray<string>): ReadonlyArray<string> => {
  for (let i = 0; i < merges.length; i++) {
    const space = merges[i]?.indexOf(" ", 1) ?? -1
    if (space < 1) throw modelError("Invalid", `tokenizer.ggml.merges: merge ${i} does not name two tokens`, "tokenizer.ggml.merges")
  }
  return merges
}

const sameLength = <A extends ArrayLike<number> | undefined>(key: string, values: A, count: number): A => {
  if (values === undefined || values.length === count) return values
  throw modelError("Inconsistent", `${key}: ${values.length} values for ${count} tokens`, key)
}
