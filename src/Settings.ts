import { Config, ConfigProvider, Context, Effect, Layer, Schema, SchemaGetter } from "effect"
import type { CatalogEntry } from "./models/Catalog.ts"

/** Everything a server can be told, from flags, environment and TOML file, in that order of precedence. */
export interface SettingsValue {
  /** Path of the GGUF file. */
  readonly model: string
  readonly host: string
  readonly port: number
  /** Tokens per slot; undefined: the model's own, lowered to what fits. */
  readonly contextLength: number | undefined
  readonly slots: number
  /** undefined: every available core. */
  readonly threads: number | undefined
  readonly kvType: "f16" | "f32"
  /** MiB of host memory for saved prompt states. */
  readonly cacheRamMib: number
  /** Path of a SQLite file that keeps stored responses; undefined: they are in memory only. */
  readonly responsesDb: string | undefined
  readonly apiKeyFile: string | undefined
  /** From MASHBOX_API_KEY. */
  readonly apiKey: string | undefined
  /** Origins of web pages that may call the server, for example "https://app.example". */
  readonly corsOrigins: ReadonlyArray<string>
  /** Names that the model answers to beside its own. */
  readonly aliases: ReadonlyArray<string>
  /** What holds where a request says nothing of sampling: greedy decoding, or what the model's file and the catalog say. */
  readonly sampling: "greedy" | "model"
  /** Path of a catalog of models; undefined: there is none. */
  readonly models: string | undefined
  /** What the catalog says of the model. */
  readonly catalogEntry?: CatalogEntry
  /** Whether Responses are also served over WebSocket. */
  readonly websocket: boolean
  /** Output that says the same over and over for so many tokens ends; 0: never. */
  readonly stopRepetition: number
  /** Whether all of a tool call but the values of its arguments is drawn as at temperature 0. */
  readonly greedyToolSyntax: boolean
}

/** What holds where nothing is said. */
export const defaults: Omit<SettingsValue, "model"> = {
  host: "127.0.0.1",
  port: 8000,
  contextLength: undefined,
  slots: 4,
  threads: undefined,
  kvType: "f16",
  cacheRamMib: 0,
  responsesDb: undefined,
  apiKeyFile: undefined,
  apiKey: undefined,
  corsOrigins: [],
  aliases: [],
  sampling: "greedy",
  models: undefined,
  websocket: false,
  stopRepetition: 2048,
  greedyToolSyntax: false
}

/** A setting that cannot be used; `setting` is its name as a flag, without the dashes. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  setting: Schema.String,
  message: Schema.String
}) {}

const intBetween = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** One text of entries with commas between them, or a list of such texts. */
const list = <S extends Schema.Codec<string, string>>(entry: S) =>
  Schema.Union([Schema.String, Schema.Array(Schema.String)]).pipe(
    Schema.decodeTo(Schema.Array(entry), {
      decode: SchemaGetter.transform((given: string | ReadonlyArray<string>) =>
        [given].flat().flatMap((text) => text.split(",")).map((text) => text.trim()).filter((text) => text !== "")
      ),
      encode: SchemaGetter.transform((entries: ReadonlyArray<string>) => entries)
    })
  )

/** As a browser writes it in the Origin header: no path, no default port, lower case. */
const origin = Schema.String.check(Schema.makeFilter((text) => URL.parse(text)?.origin === text)).annotate({
  expected: "an origin, for example https://app.example or http://localhost:3000"
})

const alias = Schema.String.check(Schema.isPattern(/^[\w.:/@+-]{1,128}$/)).annotate({
  expected: "a model name of letters, digits and . _ : / @ + -"
})

const toggle = Schema.Literals(["true", "on", "yes", "1", "false", "off", "no", "0"]).annotate({ expected: "true or false" }).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((text) => text === "true" || text === "on" || text === "yes" || text === "1"),
    encode: SchemaGetter.transform((on: boolean) => on ? "true" as const : "false" as const)
  })
)

/** Every setting by the name it has as a flag; in the environment it is MASHBOX_NAME. */
export const fields = {
  model: Schema.NonEmptyString,
  host: Schema.NonEmptyString,
  port: intBetween(0, 65_535),
  ctx: intBetween(1, 2 ** 24),
  slots: intBetween(1, 256),
  threads: intBetween(1, 1024),
  "kv-type": Schema.Literals(["f16", "f32"]),
  "cache-ram": intBetween(0, 2 ** 24),
  "responses-db": Schema.NonEmptyString,
  "api-key-file": Schema.NonEmptyString,
  "api-key": Schema.NonEmptyString,
  "cors-origin": list(origin),
  alias: list(alias),
  sampling: Schema.Literals(["greedy", "model"]),
  models: Schema.NonEmptyString,
  websocket: toggle,
  "stop-repetition": intBetween(0, 2 ** 24),
  "greedy-tool-syntax": toggle
} as const

export type Name = keyof typeof fields
export type Given = { readonly [K in Name]?: (typeof fields)[K]["Type"] }

const isName = (name: string): name is Name => Object.hasOwn(fields, name)

const read = <K extends Name>(
  name: K,
  provider: ConfigProvider.ConfigProvider
): Effect.Effect<(typeof fields)[K]["Type"] | undefined, SettingsError> => {
  const codec: Schema.Codec<(typeof fields)[K]["Type"], unknown> = Schema.toCodecStringTree(fields[name])
  return Config.schema(codec, name).pipe(Config.withDefault(undefined)).parse(provider).pipe(
    Effect.mapError((error) => new SettingsError({ setting: name, message: firstLine(error.cause.message) }))
  )
}

const firstLine = (text: string) => text.split("\n", 1)[0] ?? ""

/** The first source that names a setting decides; a bad value in it is an error, never skipped. */
export const resolve = Effect.fnUntraced(function*(sources: {
  readonly flags: Given
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly file: Readonly<Record<string, unknown>>
  readonly defaultModel: string
}) {
  const unknown = Object.keys(sources.file).find((name) => !isName(name))
  if (unknown !== undefined) {
    return yield* new SettingsError({ setting: unknown, message: `no such setting; known are ${Object.keys(fields).join(", ")}` })
  }
  const provider = ConfigProvider.fromUnknown(sources.flags).pipe(
    ConfigProvider.orElse(
      ConfigProvider.fromEnvRecord(sources.environment).pipe(ConfigProvider.constantCase, ConfigProvider.nested("MASHBOX"))
    ),
    ConfigProvider.orElse(ConfigProvider.fromUnknown(sources.file))
  )
  const value: SettingsValue = {
    model: (yield* read("model", provider)) ?? sources.defaultModel,
    host: (yield* read("host", provider)) ?? defaults.host,
    port: (yield* read("port", provider)) ?? defaults.port,
    contextLength: yield* read("ctx", provider),
    slots: (yield* read("slots", provider)) ?? defaults.slots,
    threads: yield* read("threads", provider),
    kvType: (yield* read("kv-type", provider)) ?? defaults.kvType,
    cacheRamMib: (yield* read("cache-ram", provider)) ?? defaults.cacheRamMib,
    responsesDb: yield* read("responses-db", provider),
    apiKeyFile: yield* read("api-key-file", provider),
    apiKey: yield* read("api-key", provider),
    corsOrigins: (yield* read("cors-origin", provider)) ?? defaults.corsOrigins,
    aliases: (yield* read("alias", provider)) ?? defaults.aliases,
    sampling: (yield* read("sampling", provider)) ?? defaults.sampling,
    models: yield* read("models", provider),
    websocket: (yield* read("websocket", provider)) ?? defaults.websocket,
    stopRepetition: (yield* read("stop-repetition", provider)) ?? defaults.stopRepetition,
    greedyToolSyntax: (yield* read("greedy-tool-syntax", provider)) ?? defaults.greedyToolSyntax
  }
  return value
})

export class Settings extends Context.Service<Settings, SettingsValue>()("mashbox/Settings") {
  static readonly layer = (value: SettingsValue): Layer.Layer<Settings> => Layer.succeed(Settings, value)
}
