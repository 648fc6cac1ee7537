import type { Vocabulary } from "../models/ModelMetadata.ts"

/** How a byte-level BPE tokenizer cuts text into pieces, by the name in `tokenizer.ggml.pre`. */
export interface PreTokenizer {
  /** Regular expressions in Oniguruma's spelling, applied one after another; matches and the gaps between them are pieces. */
  readonly splits: ReadonlyArray<string>
  readonly nfc: boolean
  /** A piece that is a token is not merged. */
  readonly ignoreMerges: boolean
  /** Whether prompts begin with BOS where the file does not say. */
  readonly addBos: boolean
}

// `(?i:'s)` of the originals also matches the long s, U+017F.
const contraction = "'(?:[sS\\u017f]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
const lines = "\\s*[\\r\\n]+"
const spaces = "\\s+(?!\\S)|\\s+"

const qwen2 = `${contraction}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${lines}|${spaces}`
const qwen35 = `${contraction}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${lines}|${spaces}`
const llama3 = `${contraction}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${lines}|${spaces}`
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|${spaces}`

const upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
const lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
const cased = (suffix: string) => `[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+${suffix}|[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*${suffix}`
const gpt4o = `${cased(`(?:${contraction})?`)}|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${lines}|${spaces}`
const tekken = `${cased("")}|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${lines}|${spaces}`

const deepseek =
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" +
  `${lines}|${spaces}`

const plain = { nfc: false, ignoreMerges: false, addBos: false }

const families: ReadonlyArray<readonly [PreTokenizer, names: ReadonlyArray<string>]> = [
  [
    { ...plain, splits: [qwen2], nfc: true },
    ["qwen2", "deepseek-r1-qwen", "hunyuan", "megrez", "kormo", "f2llmv2", "solar-open", "stablelm2"]
  ],
  [{ ...plain, splits: [qwen35], nfc: true }, ["qwen35"]],
  [
    { ...plain, splits: [llama3], ignoreMerges: true, addBos: true },
    ["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"]
  ],
  [{ ...plain, splits: [llama3] }, ["glm4", "chatglm-bpe"]],
  [{ ...plain, splits: ["\\p{N}", gpt2] }, ["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"]],
  [{ ...plain, splits: [gpt2] }, ["gpt-2", "phi-2", "mpt", "olmo", "exaone4", "gigachat"]],
  [{ ...plain, splits: [gpt4o] }, ["gpt-4o", "llama4", "kanana2"]],
  [{ ...plain, splits: [tekken], ignoreMerges: true, addBos: true }, ["tekken"]],
  [{ ...plain, splits: ["[^\\n]+|\\n+", qwen2] }, ["laguna"]],
  [{ ...plain, splits: ["\\p{N}{1,3}", "[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+", deepseek] }, ["deepseek-v3"]]
]

const byName: ReadonlyMap<string, PreTokenizer> = new Map(
  families.flatMap(([preTokenizer, names]) => names.map((name) => [name, preTokenizer] as const))
)

/** The pre-tokenizer that a byte-level vocabulary names; the other kinds of vocabulary have none. */
export const preTokenizerOf = ({ model, pre }: Vocabulary): PreTokenizer | undefined => model === "gpt2" ? byName.get(pre ?? "") : undefined
