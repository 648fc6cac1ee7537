import type { Vocabulary } from "../models/ModelMetadata.ts"
import { runOf, space } from "./CharacterClasses.ts"

/** `tokenizer.ggml.token_type` of llama.cpp's llama.h. */
export const normal = 1
export const unknown = 2
export const control = 3
export const userDefined = 4
export const unused = 5
export const byte = 6

/** User-defined runs of white space (Gemma) are ordinary text that is only looked up before merging. */
export const isSpaceRun = (token: string): boolean => token !== "" && runOf(token, 0, token.length, space) === token.length

/** Calls `visit` for every token of one of the given types. */
export const forEachOfType = (vocabulary: Vocabulary, types: ReadonlyArray<number>, visit: (token: string, id: number) => void): void => {
  vocabulary.types.forEach((type, id) => {
    if (types.includes(type)) visit(vocabulary.tokens[id] ?? "", id)
  })
}
