import type { Vocabulary } from "../models/ModelMetadata.ts"
import { IdList } from "./IdList.ts"
import { blockWords, linesAndBreaks, type Matcher, Pieces } from "./Matchers.ts"
import { longPiece, MergeModel } from "./MergeModel.ts"
import { nfc } from "./Nfc.ts"
import type { Paused } from "./Paused.ts"
import type { PreTokenizer } from "./PreTokenizers.ts"
import { SpecialTokens } from "./SpecialTokens.ts"
import { spmMerges } from "./SpmMerges.ts"
import * as TokenTypes from "./TokenTypes.ts"

const space = "\u2581"

/** UTF-16 units that are encoded between two pauses. */
const unitsPerPause = 1024

/**
 * Text without special tokens to ids: control tokens and tags do not exist for it, so that no text can become one. Only user-defined runs of
 * white space are looked up before merging.
 */
export class TextPipeline {
  readonly ids: ReadonlyMap<string, number>
  readonly #spaceRuns: SpecialTokens
  readonly #normalize: (text: string) => string
  readonly #matchers: ReadonlyArray<Matcher>
  readonly #model: MergeModel

  constructor(vocabulary: Vocabulary, preTokenizer: PreTokenizer | undefined, ids: ReadonlyMap<string, number>) {
    const { matchers, normalize } = shapeOf(vocabulary, preTokenizer)
    this.ids = ids
    this.#spaceRuns = SpecialTokens.spaceRuns(vocabulary)
    this.#normalize = normalize
    this.#matchers = matchers
    this.#model = new MergeModel({
      ids,
      merges: vocabulary.model === "llama" ? spmMerges(vocabulary) : vocabulary.merges,
      byteLevel: preTokenizer !== undefined,
      ignoreMerges: preTokenizer?.ignoreMerges ?? false,
      unknown: preTokenizer === undefined ? vocabulary.unknownId : undefined
    })
  }

  /** Ids of a well-formed text. */
  *encode(text: string): Paused<Int32Array<ArrayBuffer>> {
    const ids = new IdList()
    for (const part of this.#spaceRuns.cut(text, [])) {
      if (typeof part === "number") ids.push(part)
      else yield* this.#encodeSection(this.#normalize(part), ids)
      if (ids.length % unitsPerPause === 0) yield
    }
    return ids.toArray()
  }

  *#encodeSection(text: string, ids: IdList): Paused<void> {
    const pieces = new Pieces(text, this.#matchers)
    let pausedAt = 0
    while (pieces.next()) {
      const piece = text.slice(pieces.start, pieces.end)
      if (piece.length > longPiece) yield* this.#model.encodeLong(piece, ids)
      else this.#model.encode(piece, ids)
      if (pieces.end - pausedAt >= unitsPerPause) {
        pausedAt = pieces.end
        yield
      }
    }
  }
}

interface Shape {
  readonly normalize: (text: string) => string
  readonly matchers: ReadonlyArray<Matcher>
}

/** What a vocabulary's kind of tokenizer does before it merges. */
const shapeOf = (vocabulary: Vocabulary, preTokenizer: PreTokenizer | undefined): Shape => {
  if (preTokenizer !== undefined) return { normalize: preTokenizer.nfc ? nfc : (text) => text, matchers: preTokenizer.matchers }
  const prefix = vocabulary.model === "llama" && (vocabulary.addSpacePrefix ?? true) ? space : ""
  return { normalize: (text) => prefix + text.replaceAll(" ", space), matchers: wordMatchers(vocabulary) }
}

/** A cut that no token straddles: without it the whole text would be one piece. It changes no result, only the time. */
const wordMatchers = (vocabulary: Vocabulary): ReadonlyArray<Matcher> => {
  let words = true
  let lines = true
  TokenTypes.forEachOfType(vocabulary, [TokenTypes.normal], (token) => {
    words &&= !/[^\u2581]\u2581/.test(token)
    lines &&= !/[^\n]\n|\n[^\n]/.test(token)
  })
  return words ? [blockWords] : lines ? [linesAndBreaks] : []
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
