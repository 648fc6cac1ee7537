import type { Vocabulary } from "../models/ModelMetadata.ts"
import { letter, mark, number, space } from "./CharacterClasses.ts"
import * as Matchers from "./Matchers.ts"

/** How a byte-level BPE tokenizer cuts text into pieces, by the name in `tokenizer.ggml.pre`. */
export interface PreTokenizer {
  /** Applied one after another; matches and the gaps between them are pieces. */
  readonly matchers: ReadonlyArray<Matchers.Matcher>
  readonly nfc: boolean
  /** A piece that is a token is not merged. */
  readonly ignoreMerges: boolean
  /** Whether prompts begin with BOS where the file does not say. */
  readonly addBos: boolean
}

const { anyContraction, cased, digits, firstOf, isLineEnd, isLineEndOrSlash, lineEnds, prefixed, spaced, spacedOthers, spaces } = Matchers

const otherThan = space | letter | number

const words = (count: number) =>
  firstOf(anyContraction, prefixed(letter, letter | number), digits(count), spacedOthers(otherThan, isLineEnd), lineEnds, spaces)

const qwen2 = words(1)
const llama3 = words(3)
const qwen35 = firstOf(
  anyContraction,
  prefixed(letter | mark, letter | number),
  digits(1),
  spacedOthers(otherThan | mark, isLineEnd),
  lineEnds,
  spaces
)
const gpt2 = firstOf(Matchers.contraction, spaced(letter), spaced(number), spacedOthers(otherThan), spaces)
const gpt4o = firstOf(cased(anyContraction), digits(3), spacedOthers(otherThan, isLineEndOrSlash), lineEnds, spaces)
const tekken = firstOf(cased(), digits(1), spacedOthers(otherThan, isLineEndOrSlash), lineEnds, spaces)
const deepseek = firstOf(Matchers.punctuatedWord, Matchers.markedWord, Matchers.spacedPunctuation, lineEnds, spaces)

const plain = { nfc: false, ignoreMerges: false, addBos: false }

const families: ReadonlyArray<readonly [PreTokenizer, names: ReadonlyArray<string>]> = [
  [
    { ...plain, matchers: [qwen2], nfc: true },
    ["qwen2", "deepseek-r1-qwen", "hunyuan", "megrez", "kormo", "f2llmv2", "solar-open", "stablelm2"]
  ],
  [{ ...plain, matchers: [qwen35], nfc: true }, ["qwen35"]],
  [
    { ...plain, matchers: [llama3], ignoreMerges: true, addBos: true },
    ["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"]
  ],
  [{ ...plain, matchers: [llama3] }, ["glm4", "chatglm-bpe"]],
  [{ ...plain, matchers: [digits(1), gpt2] }, ["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"]],
  [{ ...plain, matchers: [gpt2] }, ["gpt-2", "phi-2", "mpt", "olmo", "exaone4", "gigachat"]],
  [{ ...plain, matchers: [gpt4o] }, ["gpt-4o", "llama4", "kanana2"]],
  [{ ...plain, matchers: [tekken], ignoreMerges: true, addBos: true }, ["tekken"]],
  [{ ...plain, matchers: [Matchers.linesAndBreaks, qwen2] }, ["laguna"]],
  [{ ...plain, matchers: [digits(3), Matchers.hanAndKana, deepseek] }, ["deepseek-v3"]]
]

const byName: ReadonlyMap<string, PreTokenizer> = new Map(
  families.flatMap(([preTokenizer, names]) => names.map((name) => [name, preTokenizer] as const))
)

/** The names of all pre-tokenizers that are known. */
export const preTokenizerNames: ReadonlyArray<string> = Array.from(byName.keys())

/** The pre-tokenizer that a byte-level vocabulary names; the other kinds of vocabulary have none. */
export const preTokenizerOf = ({ model, pre }: Vocabulary): PreTokenizer | undefined => model === "gpt2" ? byName.get(pre ?? "") : undefined
