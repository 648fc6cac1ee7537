import { Tokenizer as Library } from "@huggingface/tokenizers"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { MergeModel } from "./MergeModel.ts"
import { nfc } from "./Nfc.ts"
import type { PreTokenizer } from "./PreTokenizers.ts"
import { spmMerges } from "./SpmMerges.ts"
import * as TokenTypes from "./TokenTypes.ts"

const space = "\u2581"

/** What is used of the library's tokenizer. */
export interface TextTokenizer {
  readonly encode: (text: string, options: { readonly add_special_tokens: false }) => { readonly ids: ReadonlyArray<number> }
  readonly token_to_id: (token: string) => number | undefined
  normalizer: ((text: string) => string) | null
  model: MergeModel
}

/** What a vocabulary's kind of tokenizer does around its merges. */
interface Pipeline {
  readonly normalizer: object | null
  readonly nfc: boolean
  readonly splits: ReadonlyArray<string>
  readonly merges: ReadonlyArray<string>
  readonly byteLevel: boolean
  readonly ignoreMerges: boolean
}

/**
 * The library's tokenizer for text without special tokens: control tokens and tags do not exist for it, so that no text can become one.
 * Only user-defined runs of white space are looked up before merging.
 */
export const make = (vocabulary: Vocabulary, preTokenizer: PreTokenizer | undefined, ids: Map<string, number>): TextTokenizer => {
  const { byteLevel, ignoreMerges, merges, normalizer, splits, ...pipeline } = pipelineOf(vocabulary, preTokenizer)
  const tokenizer: TextTokenizer = new Library({
    version: "1.0",
    added_tokens: spaceRuns(vocabulary),
    normalizer,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: splits.map((regex) => ({ type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false }))
    },
    model: { type: "BPE", vocab: {}, merges: [] },
    post_processor: null,
    decoder: null
  }, { clean_up_tokenization_spaces: false })
  const unknown = vocabulary.unknownId === undefined || byteLevel ? undefined : vocabulary.tokens[vocabulary.unknownId]
  if (pipeline.nfc) tokenizer.normalizer = nfc
  tokenizer.model = new MergeModel({ ids, merges, byteLevel, ignoreMerges, unknown })
  return tokenizer
}

/** Ids of a text; the text is well-formed UTF-16. */
export const encode = (tokenizer: TextTokenizer, text: string): Int32Array<ArrayBuffer> =>
  Int32Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids)

const pipelineOf = (vocabulary: Vocabulary, preTokenizer: PreTokenizer | undefined): Pipeline => {
  if (preTokenizer !== undefined) {
    const { ignoreMerges, splits } = preTokenizer
    return { normalizer: null, nfc: preTokenizer.nfc, splits, merges: vocabulary.merges, byteLevel: true, ignoreMerges }
  }
  const replace = { type: "Replace", pattern: { String: " " }, content: space }
  const prefixed = vocabulary.model === "llama" && (vocabulary.addSpacePrefix ?? true)
  return {
    normalizer: prefixed ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: space }, replace] } : replace,
    nfc: false,
    splits: wordSplits(vocabulary),
    merges: vocabulary.model === "llama" ? spmMerges(vocabulary) : vocabulary.merges,
    byteLevel: false,
    ignoreMerges: false
  }
}

/** A split that no token straddles: without it the whole text would be one piece. It changes no result, only the time. */
const wordSplits = (vocabulary: Vocabulary): ReadonlyArray<string> => {
  let words = true
  let lines = true
  TokenTypes.forEachOfType(vocabulary, [TokenTypes.normal], (token) => {
    words &&= !/[^\u2581]\u2581/.test(token)
    lines &&= !/[^\n]\n|\n[^\n]/.test(token)
  })
  return words ? [`${space}+[^${space}]*|[^${space}]+`] : lines ? ["[^\\n]+|\\n+"] : []
}

/** Ids of the tokens that text may become: no control tokens and no tags. `repeated`: an id whose text is another token's too. */
export const textIds = (vocabulary: Vocabulary): { readonly ids: Map<string, number>; readonly repeated: number | undefined } => {
  const ids = new Map<string, number>()
  const special = new Set<string>()
  let repeated: number | undefined
  for (let id = 0; id < vocabulary.tokens.length; id++) {
    const token = vocabulary.tokens[id] ?? ""
    if (ids.has(token) || special.has(token)) repeated ??= id
    const type = vocabulary.types[id]
    // No merge makes SentencePiece's unknown token, but it stands for what has no bytes.
    const fallback = vocabulary.model !== "gpt2" && id === vocabulary.unknownId
    if (!fallback && (type === TokenTypes.control || (type === TokenTypes.userDefined && !TokenTypes.isSpaceRun(token)))) special.add(token)
    else ids.set(token, id)
  }
  return { ids, repeated }
}

const spaceRuns = (vocabulary: Vocabulary): ReadonlyArray<object> => {
  const runs: Array<object> = []
  TokenTypes.forEachOfType(vocabulary, [TokenTypes.userDefined], (content, id) => {
    if (TokenTypes.isSpaceRun(content)) {
      runs.push({ id, content, special: false, normalized: false, lstrip: false, rstrip: false, single_word: false })
    }
  })
  return runs
}
