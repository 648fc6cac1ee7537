import { Effect, Layer } from "effect"
import { basename } from "node:path"
import { Auth } from "./auth/Auth.ts"
import type { ModelError } from "./domain/Errors.ts"
import { ServedModel } from "./domain/ServedModel.ts"
import type { Engine } from "./engine/Engine.ts"
import { layerInProcess } from "./engine/EngineInProcess.ts"
import { layerProcess } from "./engine/EngineProcess.ts"
import type { NativeLoadOptions } from "./engine/Native.ts"
import { Admission } from "./generation/Admission.ts"
import { Generation } from "./generation/Generation.ts"
import * as GgufMetadata from "./models/GgufMetadata.ts"
import type { ModelMetadata } from "./models/ModelMetadata.ts"
import { ChatTemplate } from "./prompt/ChatTemplate.ts"
import { LongPrompts } from "./prompt/LongPrompts.ts"
import * as Server from "./server/Server.ts"
import { Settings, type SettingsValue } from "./Settings.ts"
import * as GgufTokenizer from "./tokenizer/GgufTokenizer.ts"
import { Tokenizer } from "./tokenizer/Tokenizer.ts"

/** Most rows of one engine step: prefill runs in chunks of this many tokens, and decoding waits for at most one of them. */
const batchTokens = 256

const loadOptions = (settings: SettingsValue): NativeLoadOptions => ({
  path: settings.model,
  threads: settings.threads ?? 0,
  slots: settings.slots,
  contextLength: settings.contextLength ?? 0,
  kvType: settings.kvType,
  batchTokens
})

/** The model of the settings, run by a supervised child process. */
export const layerEngineProcess: Layer.Layer<Engine, never, Settings> = Layer.unwrap(
  Settings.useSync((settings) => layerProcess({ load: loadOptions(settings) }))
)

/** The model of the settings, run in this process. */
export const layerEngineInProcess: Layer.Layer<Engine, never, Settings> = Layer.unwrap(
  Settings.useSync((settings) => layerInProcess({ load: loadOptions(settings) }))
)

const servedModel = (settings: SettingsValue, metadata: ModelMetadata): ServedModel["Service"] => ({
  id: metadata.id,
  aliases: settings.aliases,
  contextLength: settings.contextLength ?? metadata.contextLength,
  weights: basename(metadata.path),
  ...(metadata.chatTemplate === undefined ? {} : { chatTemplate: metadata.chatTemplate }),
  weightsBytes: metadata.tensorBytes,
  parameters: metadata.parameters,
  slots: settings.slots,
  cacheRamMib: settings.cacheRamMib,
  prefixCache: false
})

/** The chat template, and the thread for long prompts. A model that cannot chat still serves what needs no template. */
const layerPrompts = (metadata: ModelMetadata) =>
  Layer.unwrap(Tokenizer.useSync(({ bos, eos, specialTexts }) => {
    const source = { template: metadata.chatTemplate, bos, eos, specialTexts }
    return Layer.merge(
      Layer.effect(ChatTemplate, ChatTemplate.make(source).pipe(Effect.catch((error) => Effect.succeed(ChatTemplate.refusing(error))))),
      LongPrompts.layer(metadata.vocabulary, source)
    )
  }))

/** What the server knows of a model without running it: tokenizer, chat template, and what it tells clients. */
export const layerModel: Layer.Layer<Tokenizer | ChatTemplate | LongPrompts | ServedModel, ModelError, Settings> = Layer.unwrap(
  Effect.gen(function*() {
    const settings = yield* Settings
    const metadata = yield* GgufMetadata.read(settings.model)
    return layerPrompts(metadata).pipe(
      Layer.provideMerge(GgufTokenizer.layer(metadata.vocabulary)),
      Layer.merge(Layer.succeed(ServedModel, servedModel(settings, metadata)))
    )
  })
)

/** Everything but the engine. It listens at once and answers 503 until the engine is ready. */
export const layerServerWithoutEngine = Server.layer.pipe(
  Layer.provideMerge(Generation.layer),
  Layer.provideMerge(Layer.mergeAll(layerModel, Admission.layer, Auth.layer))
)

/** A whole server: the model of the settings at the host and port of the settings. */
export const layer = layerServerWithoutEngine.pipe(Layer.provideMerge(layerEngineProcess))
