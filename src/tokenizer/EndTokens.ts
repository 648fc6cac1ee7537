import type { Vocabulary } from "../models/ModelMetadata.ts"
import * as TokenTypes from "./TokenTypes.ts"

// llama.cpp's list (llama-vocab.cpp, special_eog_ids): files often name only one of their end tokens by key.
const endTexts: ReadonlySet<string> = new Set([
  "<|eot_id|>",
  "<|im_end|>",
  "<|end|>",
  "<|return|>",
  "<|call|>",
  "<|flush|>",
  "<|calls|>",
  "<end_of_turn>",
  "<|endoftext|>",
  "<|end_of_text|>",
  "</s>",
  "<|eom_id|>",
  "<EOT>",
  "_<EOT>",
  "[EOT]",
  "[EOS]",
  "<eos>",
  "<turn|>",
  "<|tool_response>",
  "<｜end▁of▁sentence｜>",
  "<end_of_utterance>"
])

/** Ids of the tokens that end a turn, ascending. */
export const endTokens = (vocabulary: Vocabulary): Int32Array => {
  const ids = new Set<number>()
  const controls = new Map<string, number>()
  TokenTypes.forEachOfType(vocabulary, [TokenTypes.control], (token, id) => {
    controls.set(token, id)
    if (endTexts.has(token)) ids.add(id)
  })
  // In gpt-oss's format <|end|> ends a message inside the turn; Gemma 4 knows </s> only as an HTML tag.
  if (controls.has("<|return|>") && controls.has("<|call|>")) ids.delete(controls.get("<|end|>") ?? -1)
  if (vocabulary.model === "gemma4") ids.delete(controls.get("</s>") ?? -1)
  for (const id of [vocabulary.eosId, vocabulary.eotId, vocabulary.eomId]) if (id !== undefined) ids.add(id)
  return Int32Array.from(ids).toSorted()
}
