import { Effect, Layer } from "effect"
import { basename } from "node:path"
import { Auth } from "./auth/Auth.ts"
import { ModelError, type TemplateError } from "./domain/Errors.ts"
import { greedyDefaults } from "./domain/Sampling.ts"
import { ServedModel } from "./domain/ServedModel.ts"
import type { Engine } from "./engine/Engine.ts"
import { layerInProcess } from "./engine/EngineInProcess.ts"
import { layerProcess } from "./engine/EngineProcess.ts"
import type { NativeLoadOptions } from "./engine/Native.ts"
import { Admission } from "./generation/Admission.ts"
import { Generation } from "./generation/Generation.ts"
import { syntaxes, syntaxNamed } from "./generation/tools/syntaxes.ts"
import type { CatalogEntry } from "./models/Catalog.ts"
import * as GgufMetadata from "./models/GgufMetadata.ts"
import type { ModelMetadata } from "./models/ModelMetadata.ts"
import { ChatTemplate, type TemplateSource } from "./prompt/ChatTemplate.ts"
import { LongPrompts } from "./prompt/LongPrompts.ts"
import * as Server from "./server/Server.ts"
import { Settings, type SettingsValue } from "./Settings.ts"
import * as GgufTokenizer from "./tokenizer/GgufTokenizer.ts"
import { Tokenizer } from "./tokenizer/Tokenizer.ts"

/** Most rows of one engine step: prefill runs in chunks of this many tokens, and decoding waits for at most one of them. */
const batchTokens = 256

/** What the engine is told to load. */
export const loadOptions = (
  settings: Pick<SettingsValue, "model" | "threads" | "slots" | "contextLength" | "kvType">
): NativeLoadOptions => ({
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
  id: settings.catalogEntry?.id ?? metadata.id,
  aliases: [...settings.aliases, ...settings.catalogEntry?.aliases ?? []],
  contextLength: settings.contextLength ?? metadata.contextLength,
  weights: basename(metadata.path),
  ...(metadata.chatTemplate === undefined ? {} : { chatTemplate: metadata.chatTemplate }),
  ...(settings.sampling === "model"
    ? { samplingDefaults: { ...greedyDefaults, ...metadata.sampling, ...settings.catalogEntry?.sampling } }
    : {}),
  ...(settings.catalogEntry?.toolSyntax === undefined ? {} : { toolSyntax: settings.catalogEntry.toolSyntax }),
  weightsBytes: metadata.tensorBytes,
  parameters: metadata.parameters,
  slots: settings.slots,
  cacheRamMib: settings.cacheRamMib,
  prefixCache: false
})

/** The chat template, and the thread for long prompts. A model without a template still serves what needs none; one whose template cannot run is refused. */
const layerPrompts = (metadata: ModelMetadata, entry: CatalogEntry | undefined) =>
  Layer.unwrap(Effect.gen(function*() {
    const { bos, eos, specialTexts } = yield* Tokenizer
    const source: TemplateSource = {
      template: metadata.chatTemplate,
      bos,
      eos,
      specialTexts,
      ...(entry?.reasoning === undefined ? {} : { reasoningTags: entry.reasoning })
    }
    const template = yield* ChatTemplate.make(source).pipe(
      Effect.catch((error) =>
        metadata.chatTemplate === undefined ? Effect.succeed(ChatTemplate.refusing(error)) : Effect.fail(unusableTemplate(error))
      )
    )
    return Layer.merge(Layer.succeed(ChatTemplate, template), LongPrompts.layer(metadata.vocabulary, source))
  }))

const unusableTemplate = ({ message }: TemplateError) =>
  new ModelError({
    reason: "Unsupported",
    message: `tokenizer.chat_template: ${message}; models.json can name another template`,
    subject: "tokenizer.chat_template"
  })

/** What the file says, with what the catalog says instead. */
const overridden = (metadata: ModelMetadata, entry: CatalogEntry | undefined): Effect.Effect<ModelMetadata, ModelError> => {
  if (entry === undefined) return Effect.succeed(metadata)
  if (entry.toolSyntax !== undefined && syntaxNamed(entry.toolSyntax) === undefined) {
    const known = syntaxes.map(({ name }) => name).join(", ")
    return Effect.fail(
      new ModelError({
        reason: "Invalid",
        message: `models.json: ${entry.id}.tool_syntax: ${JSON.stringify(entry.toolSyntax)} is not known; ${known} are`,
        subject: "models.json"
      })
    )
  }
  return Effect.succeed({
    ...metadata,
    chatTemplate: entry.chatTemplate ?? metadata.chatTemplate,
    vocabulary: entry.preTokenizer === undefined ? metadata.vocabulary : { ...metadata.vocabulary, pre: entry.preTokenizer }
  })
}

/** What the server knows of a model without running it: tokenizer, chat template, and what it tells clients. */
export const layerModel: Layer.Layer<Tokenizer | ChatTemplate | LongPrompts | ServedModel, ModelError, Settings> = Layer.unwrap(
  Effect.gen(function*() {
    const settings = yield* Settings
    const metadata = yield* overridden(yield* GgufMetadata.read(settings.model), settings.catalogEntry)
    return layerPrompts(metadata, settings.catalogEntry).pipe(
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
