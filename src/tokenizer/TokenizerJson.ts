import { Tokenizer as HfTokenizer } from "@huggingface/tokenizers"
import { Result } from "effect"
import { ModelError } from "../domain/Errors.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { MergeModel } from "./MergeModel.ts"
import { type PreTokenizer, preTokenizers } from "./PreTokenizers.ts"
import { spmMerges } from "./SpmMerges.ts"
import * as TokenTypes from "./TokenTypes.ts"

const space = "\u2581"

/** What a vocabulary's kind of tokenizer does around its merges. */
interface Pipeline {
  readonly normalizer: object | null
  readonly splits: ReadonlyArray<string>
  readonly merges: ReadonlyArray<string>
  readonly byteLevel: boolean
  readonly ignoreMerges: boolean
}

/** The pre-tokenizer of a byte-level vocabulary, undefined for the other kinds; an unknown one would degrade the model silently. */
export const preTokenizerOf = (vocabulary: Vocabulary): Result.Result<PreTokenizer | undefined, ModelError> => {
  if (vocabulary.model !== "gpt2") return Result.succeed(undefined)
  const found = preTokenizers.get(vocabulary.pre ?? "")
  if (found !== undefined) return Result.succeed(found)
  const subject = "tokenizer.ggml.pre"
  const name = vocabulary.pre === undefined
    ? "the key is missing"
    : `${JSON.stringify(vocabulary.pre.slice(0, 80))} is not a known pre-tokenizer`
  return Result.fail(new ModelError({ reason: "Unsupported", message: `${subject}: ${name}`, subject }))
}

/**
 * The library's tokenizer for text without special tokens: control tokens and tags do not exist for it, so that no text can become one.
 * Only user-defined runs of white space are looked up before merging.
 */
export const make = (vocabulary: Vocabulary): Result.Result<HfTokenizer, ModelError> =>
  Result.flatMap(preTokenizerOf(vocabulary), (preTokenizer) =>
    Result.map(textIds(vocabulary), (ids) => {
      const { byteLevel, ignoreMerges, merges, normalizer, splits } = pipelineOf(vocabulary, preTokenizer)
      const tokenizer = new HfTokenizer({
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
      tokenizer.model = new MergeModel({ ids, merges, byteLevel, ignoreMerges, unknown })
      return tokenizer
    }))

const pipelineOf = (vocabulary: Vocabulary, preTokenizer: PreTokenizer | undefined): Pipeline => {
  if (preTokenizer !== undefined) {
    const { ignoreMerges, nfc, splits } = preTokenizer
    return { normalizer: nfc ? { type: "NFC" } : null, splits, merges: vocabulary.merges, byteLevel: true, ignoreMerges }
  }
  const replace = { type: "Replace", pattern: { String: " " }, content: space }
  const prefixed = vocabulary.model === "llama" && (vocabulary.addSpacePrefix ?? true)
  return {
    normalizer: prefixed ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: space }, replace] } : replace,
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

/** Ids of the tokens that text may become: not the control tokens, and of the user-defined ones what merges make of them. */
const textIds = (vocabulary: Vocabulary): Result.Result<Map<string, number>, ModelError> => {
  const ids = new Map<string, number>()
  const special = new Set<string>()
  for (let id = 0; id < vocabulary.tokens.length; id++) {
    const token = vocabulary.tokens[id] ?? ""
    if (ids.has(token) || special.has(token)) {
      const subject = "tokenizer.ggml.tokens"
      return Result.fail(new ModelError({ reason: "Invalid", message: `${subject}: token ${id} has the text of another one`, subject }))
    }
    // SentencePiece's unknown token may be marked as control; no merge makes it, but it stands for what has no bytes.
    if (vocabulary.types[id] === TokenTypes.control && (vocabulary.model === "gpt2" || id !== vocabulary.unknownId)) special.add(token)
    else ids.set(token, id)
  }
  return Result.succeed(ids)
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
