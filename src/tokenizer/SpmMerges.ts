import type { Vocabulary } from "../models/ModelMetadata.ts"
import * as TokenTypes from "./TokenTypes.ts"

/**
 * The merges that SentencePiece's scores imply, best first, as "left right". Only normal tokens take part, else a control or byte token
 * could be assembled from text. The order among equal scores is that of Hugging Face's converter.
 */
export const spmMerges = (vocabulary: Vocabulary): ReadonlyArray<string> => {
  const scores = new Map<string, number>()
  TokenTypes.forEachOfType(vocabulary, [TokenTypes.normal], (token, id) => {
    // The normalizer leaves no space in the text, and the space separates the halves of a merge.
    if (!token.includes(" ")) scores.set(token, vocabulary.scores?.[id] ?? 0)
  })
  const merges: Array<{ readonly merge: string; readonly score: number; readonly left: number; readonly right: number }> = []
  for (const [token, score] of scores) {
    const chars = Array.from(token)
    let left = ""
    for (let i = 1; i < chars.length; i++) {
      left += chars[i - 1]
      const right = token.slice(left.length)
      if (scores.has(left) && scores.has(right)) merges.push({ merge: `${left} ${right}`, score, left: i, right: chars.length - i })
    }
  }
  return merges.toSorted((a, b) => b.score - a.score || b.left - a.left || b.right - a.right).map(({ merge }) => merge)
}
