import { Effect, Layer, type Scope } from "effect"
import type { ModelError } from "../domain/Errors.ts"
import type { Vocabulary } from "../models/ModelMetadata.ts"
import { endTokens } from "./EndTokens.ts"
import * as LongEncoder from "./LongEncoder.ts"
import { PromptEncoder } from "./PromptEncoder.ts"
import { SectionCache } from "./SectionCache.ts"
import { Utf8Stream } from "./StreamDecoder.ts"
import { Tokenizer } from "./Tokenizer.ts"
import { TokenPieces } from "./TokenPieces.ts"

/** Prompts with more characters to encode than this leave the event loop alone: about 5 ms of it. */
const longPrompt = 8 * 1024

const noBytes = new Uint8Array()

const cacheBytes = 32 * 1024 * 1024

export interface Options {
  /** How the thread for long texts is started. */
  readonly startThread?: LongEncoder.StartThread
}

/**
 * The tokenizer of a model, out of the vocabulary in its file. Ids of the texts between special tokens are kept, so that a growing chat
 * is encoded only where it grew. Fails where the vocabulary names a pre-tokenizer that is not known.
 */
export const make = (vocabulary: Vocabulary, options: Options = {}): Effect.Effect<Tokenizer["Service"], ModelError, Scope.Scope> =>
  Effect.gen(function*() {
    const encoder = yield* Effect.fromResult(PromptEncoder.make(vocabulary))
    const thread = yield* LongEncoder.make(options.startThread ?? LongEncoder.startThread(vocabulary))
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

    const encodeTexts = (texts: ReadonlyArray<string>) =>
      texts.reduce((characters, text) => characters + text.length, 0) > longPrompt
        ? thread.encode(texts)
        : Effect.sync(() => texts.map((text) => encoder.encodeText(text)))

    return Tokenizer.of({
      encode: (prompt) =>
        Effect.suspend(() => {
          const parts = encoder.specials.cut(prompt.text.toWellFormed(), prompt.untrusted)
          const known = new Map<string, Int32Array>()
          const missing = new Set<string>()
          for (const part of parts) {
            if (typeof part === "number" || known.has(part)) continue
            const ids = cache.get(part)
            if (ids === undefined) missing.add(part)
            else known.set(part, ids)
          }
          const texts = Array.from(missing)
          return Effect.map(encodeTexts(texts), (encoded) => {
            texts.forEach((text, i) => {
              const ids = encoded[i] ?? new Int32Array()
              known.set(text, ids)
              cache.set(text, ids)
            })
            return encoder.join(
              parts.map((part) => typeof part === "number" ? part : known.get(part) ?? new Int32Array()),
              prompt.addBos ?? true
            )
          })
        }),
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
export const layer = (vocabulary: Vocabulary, options?: Options): Layer.Layer<Tokenizer, ModelError> =>
  Layer.effect(Tokenizer, make(vocabulary, options))
