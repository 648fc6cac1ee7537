import { Effect, Layer } from "effect"
import type { ModelError } from "../domain/Errors.ts"
import { CurrentTenant } from "../domain/Tenant.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { endTokens } from "./EndTokens.ts"
import { inTurns } from "./InTurns.ts"
import { PromptEncoder } from "./PromptEncoder.ts"
import { SectionCache } from "./SectionCache.ts"
import { Utf8Stream } from "./StreamDecoder.ts"
import { Tokenizer } from "./Tokenizer.ts"
import { TokenPieces } from "./TokenPieces.ts"

const noBytes = new Uint8Array()

const cacheBytes = 16 * 1024 * 1024

/**
 * The tokenizer of a model, out of the vocabulary in its file. Ids of the texts between special tokens are kept, so that a growing chat
 * is encoded only where it grew. Fails where the vocabulary names a pre-tokenizer that is not known.
 */
export const make = (vocabulary: Vocabulary): Effect.Effect<Tokenizer["Service"], ModelError> =>
  Effect.gen(function*() {
    const encoder = yield* Effect.fromResult(PromptEncoder.make(vocabulary))
    const cache = new SectionCache(cacheBytes)
    const pieces = new TokenPieces(vocabulary)
    const allPieces = new TokenPieces(vocabulary, true)
    const chosenPieces = new WeakMap<ReadonlySet<string>, TokenPieces>()
    const showing = (texts: ReadonlySet<string>) => {
      const own = chosenPieces.get(texts) ?? new TokenPieces(vocabulary, texts)
      chosenPieces.set(texts, own)
      return own
    }
    const tokenBytes: Array<Uint8Array | undefined> = []
    const textOf = (id: number | undefined) => id === undefined ? undefined : vocabulary.tokens[id]

    return Tokenizer.of({
      encode: (prompt) => Effect.flatMap(CurrentTenant, (tenant) => inTurns(() => encoder.encode(prompt, cache, tenant))),
      tokenBytes: (token) => token in vocabulary.tokens ? tokenBytes[token] ??= allPieces.bytes(token) : noBytes,
      decoder: (shown = false) => new Utf8Stream(shown === true ? allPieces : shown === false ? pieces : showing(shown)),
      endTokens: endTokens(vocabulary),
      bos: textOf(vocabulary.bosId),
      eos: textOf(vocabulary.eosId),
      specialTexts: Array.from(encoder.specials.ids.keys()),
      tokenId: (text) => encoder.tokenId(text),
      size: vocabulary.tokens.length
    })
  })

/** {@link make} as a layer. */
export const layer = (vocabulary: Vocabulary): Layer.Layer<Tokenizer, ModelError> => Layer.effect(Tokenizer, make(vocabulary))
