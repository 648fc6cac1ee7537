import { Effect, FileSystem, Path, Schema } from "effect"
import { ModelError } from "../domain/Errors.ts"
import type { SamplingDefaults } from "../domain/Sampling.ts"
import { printable } from "./GgufCursor.ts"
import { samplingBounds } from "./ModelSampling.ts"

const bounded = (field: keyof SamplingDefaults) =>
  Schema.optionalKey(
    Schema.Finite.check(Schema.makeFilter(samplingBounds[field])).annotate({ expected: "a value that can be sampled with" })
  )

const Sampling = Schema.Struct({
  temperature: bounded("temperature"),
  top_k: bounded("topK"),
  top_p: bounded("topP"),
  min_p: bounded("minP"),
  repetition_penalty: bounded("repetitionPenalty"),
  frequency_penalty: bounded("frequencyPenalty"),
  presence_penalty: bounded("presencePenalty"),
  rep_window: bounded("repetitionWindow")
})

const Name = Schema.String.check(Schema.isPattern(/^[\w.:/@+-]{1,128}$/)).annotate({
  expected: "a model name of letters, digits and . _ : / @ + -"
})

const Tag = Schema.NonEmptyString.check(Schema.isMaxLength(64))

const Entry = Schema.Struct({
  /** The GGUF file, or the first part of a split one; relative to the catalog's folder. */
  file: Schema.NonEmptyString,
  aliases: Schema.optionalKey(Schema.Array(Name)),
  /** A file with the chat template to use instead of the model's own. */
  chat_template: Schema.optionalKey(Schema.NonEmptyString),
  /** The syntax of the model's tool calls, where its template does not show it. */
  tool_syntax: Schema.optionalKey(Schema.NonEmptyString),
  /** What stands before and after its reasoning, where its template does not show it. */
  reasoning: Schema.optionalKey(Schema.Tuple([Tag, Tag])),
  /** How its tokenizer cuts text, instead of `tokenizer.ggml.pre`. */
  pre_tokenizer: Schema.optionalKey(Schema.NonEmptyString),
  /** What holds where a request is silent and the server runs with `--sampling model`. */
  sampling: Schema.optionalKey(Sampling)
})

const Catalog = Schema.Struct({ models: Schema.Record(Name, Entry) })

/** What `models.json` says of one model. */
export interface CatalogEntry {
  /** The id that clients see. */
  readonly id: string
  /** Path of its GGUF file. */
  readonly file: string
  readonly aliases: ReadonlyArray<string>
  /** The text of a template that takes the place of the model's own. */
  readonly chatTemplate: string | undefined
  readonly toolSyntax: string | undefined
  readonly reasoning: readonly [open: string, close: string] | undefined
  readonly preTokenizer: string | undefined
  readonly sampling: Partial<SamplingDefaults>
}

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Catalog), { onExcessProperty: "error" })

const invalid = (path: string, reason: string) =>
  new ModelError({ reason: "Invalid", message: `${printable(path)}: ${reason}`, subject: "models.json" })

/** The first line of a schema's complaint, with the place it is about. */
const complaint = (error: Schema.SchemaError): string => error.message.split("\n").map((line) => line.trim()).join(" ").slice(0, 400)

const readText = (path: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(path)).pipe(
    Effect.mapError((error) =>
      new ModelError({ reason: "NotFound", message: `${printable(path)}: cannot be read (${error.reason._tag})`, subject: "models.json" })
    )
  )

const samplingOf = (sampling: typeof Sampling.Type): Partial<SamplingDefaults> => {
  const { frequency_penalty, min_p, presence_penalty, rep_window, repetition_penalty, temperature, top_k, top_p } = sampling
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(top_k === undefined ? {} : { topK: top_k }),
    ...(top_p === undefined ? {} : { topP: top_p }),
    ...(min_p === undefined ? {} : { minP: min_p }),
    ...(repetition_penalty === undefined ? {} : { repetitionPenalty: repetition_penalty }),
    ...(frequency_penalty === undefined ? {} : { frequencyPenalty: frequency_penalty }),
    ...(presence_penalty === undefined ? {} : { presencePenalty: presence_penalty }),
    ...(rep_window === undefined ? {} : { repetitionWindow: rep_window })
  }
}

/**
 * The entry of a catalog (`models.json`) that `model` names: by its id, one of its aliases, or the path of its file. Undefined where there
 * is none. Every fault of the catalog is a `ModelError` that names it.
 */
export const find = Effect.fn("Catalog.find")(function*(catalog: string, model: string) {
  const path = yield* Path.Path
  const folder = path.dirname(catalog)
  const { models } = yield* decode(yield* readText(catalog)).pipe(Effect.mapError((error) => invalid(catalog, complaint(error))))
  const entries = Object.entries(models)
  const fileOf = (entry: typeof Entry.Type) => path.resolve(folder, entry.file)
  const found = entries.find(([id]) => id === model) ??
    entries.find(([, entry]) => entry.aliases?.includes(model) === true) ??
    entries.find(([, entry]) => fileOf(entry) === path.resolve(model))
  if (found === undefined) return undefined
  const [id, entry] = found
  const result: CatalogEntry = {
    id,
    file: fileOf(entry),
    aliases: entry.aliases ?? [],
    chatTemplate: entry.chat_template === undefined ? undefined : yield* readText(path.resolve(folder, entry.chat_template)),
    toolSyntax: entry.tool_syntax,
    reasoning: entry.reasoning,
    preTokenizer: entry.pre_tokenizer,
    sampling: samplingOf(entry.sampling ?? {})
  }
  return result
})
