import { Console, Effect, Layer, Option, Record } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { HttpServer, type HttpServerError } from "effect/http"
import { join } from "node:path"
import { EngineError, ModelError } from "../domain/Errors.ts"
import { ServedModel } from "../domain/ServedModel.ts"
import { Engine } from "../engine/Engine.ts"
import { projectRoot } from "../engine/EnginePaths.ts"
import { Generation } from "../generation/Generation.ts"
import * as Mashbox from "../Mashbox.ts"
import * as Settings from "../Settings.ts"
import * as JsonLogger from "../telemetry/JsonLogger.ts"
import * as Traces from "../telemetry/Traces.ts"
import { inCatalog } from "./catalog.ts"
import { readConfigFile } from "./configFile.ts"
import { ListenError } from "./Failure.ts"
import { progressBar, readyLine } from "./Status.ts"

const bundledModel = join(projectRoot, "models", "mashbox-demo.gguf")

const flags = {
  host: Flag.String("host").pipe(
    Flag.withDescription("Address to listen on (127.0.0.1); one that is not loopback needs a key"),
    Flag.optional
  ),
  port: Flag.Int("port").pipe(Flag.withDescription("Port to listen on (8000); 0 takes a free one"), Flag.optional),
  ctx: Flag.Int("ctx").pipe(
    Flag.withDescription("Context of each slot in tokens (the model's own, lowered to what fits)"),
    Flag.optional
  ),
  slots: Flag.Int("slots").pipe(Flag.withDescription("Requests decoded together (4)"), Flag.optional),
  threads: Flag.Int("threads").pipe(Flag.withDescription("Threads of the engine (every available core)"), Flag.optional),
  "kv-type": Flag.Literals("kv-type", ["f16", "f32"]).pipe(Flag.withDescription("Type of cached keys and values (f16)"), Flag.optional),
  "cache-ram": Flag.Int("cache-ram").pipe(
    Flag.withDescription("MiB of host memory for saved prompts (0)"),
    Flag.optional
  ),
  "responses-db": Flag.String("responses-db").pipe(
    Flag.withDescription("SQLite file that keeps stored responses over a restart; without it they are in memory only"),
    Flag.optional
  ),
  "api-key-file": Flag.String("api-key-file").pipe(
    Flag.withDescription("File of keys, one a line, `name:key` to name a tenant; read again when it changes"),
    Flag.optional
  ),
  "cors-origin": Flag.String("cors-origin").pipe(
    Flag.withDescription(
      "Origin of a web page that may call the server, for example https://app.example; repeat it or separate with commas"
    ),
    Flag.atLeast(1),
    Flag.optional
  ),
  alias: Flag.String("alias").pipe(
    Flag.withDescription("Name that the model also answers to; repeat it or separate with commas"),
    Flag.atLeast(1),
    Flag.optional
  ),
  sampling: Flag.Literals("sampling", ["greedy", "model"]).pipe(
    Flag.withDescription(
      "What holds where a request says nothing of sampling (greedy); model: what the model's file (general.sampling.*) and models.json say"
    ),
    Flag.optional
  ),
  models: Flag.String("models").pipe(
    Flag.withDescription("Catalog of models ($XDG_CONFIG_HOME/mashbox/models.json where there is one)"),
    Flag.optional
  ),
  "stop-repetition": Flag.Int("stop-repetition").pipe(
    Flag.withDescription("Tokens after which output that says the same over and over ends (2048); 0: never"),
    Flag.optional
  ),
  "greedy-tool-syntax": Flag.Boolean("greedy-tool-syntax").pipe(
    Flag.withDescription(
      "Draw names, keys and punctuation of tool calls as at temperature 0 (off); values of arguments keep the request's sampling"
    ),
    Flag.optional
  ),
  websocket: Flag.Boolean("websocket").pipe(
    Flag.withDescription("Serve Responses over WebSocket as well (off): GET /v1/responses with an upgrade, as Codex asks for it"),
    Flag.optional
  )
}

/** Shows on a terminal how far the model has been loaded, until it is ready. */
const showLoading = Effect.gen(function*() {
  const engine = yield* Engine
  if (!process.stderr.isTTY) return yield* Effect.never
  return yield* Effect.gen(function*() {
    const status = yield* engine.status
    if (status._tag === "Loading") process.stderr.write(`\r\x1b[KLoading the model ${progressBar(status.progress)}`)
    yield* Effect.sleep("100 millis")
  }).pipe(Effect.forever, Effect.ensuring(Effect.sync(() => process.stderr.write("\r\x1b[K"))))
})

const urlOf = ({ address }: HttpServer.HttpServer["Service"], host: string) =>
  "port" in address ? `http://${host.includes(":") ? `[${host}]` : host}:${address.port}` : address.path

/** Waits for the end of an engine that fails for good: a server that can serve nothing more must end, so that whoever started it learns. */
export const untilFailed = (engine: Engine["Service"]): Effect.Effect<never, EngineError> =>
  Effect.gen(function*() {
    while (true) {
      const status = yield* engine.status
      if (status._tag === "Failed") return yield* status.error
      yield* Effect.sleep("1 second")
    }
  })

/** A second Ctrl-C does not wait for running requests. */
const stopAtOnceOnSecondSignal = Effect.sync(() => {
  let signals = 0
  const onSignal = () => {
    signals++
    if (signals === 1) process.stderr.write("Finishing the running requests; press Ctrl-C again to stop at once.\n")
    else process.exit(130)
  }
  process.on("SIGINT", onSignal)
})

const serve = Effect.fnUntraced(function*(settings: Settings.SettingsValue) {
  const served = Effect.gen(function*() {
    const engine = yield* Engine
    const model = yield* Effect.raceFirst(engine.ready, showLoading)
    const { id } = yield* ServedModel
    yield* Console.error(readyLine(urlOf(yield* HttpServer.HttpServer, settings.host), id, model))
    yield* Effect.forkChild((yield* Generation).warmUp)
    return yield* untilFailed(engine)
  })
  return yield* served.pipe(
    Effect.provide(Mashbox.layer.pipe(Layer.provideMerge(Settings.Settings.layer(settings)))),
    Effect.catchTags({
      ModelError: (error) => Effect.fail(new ModelError({ ...error, message: about(settings.model, error.message) })),
      EngineError: (error) => Effect.fail(new EngineError({ ...error, message: about(settings.model, error.message) }))
    }),
    Effect.catchTag(
      "ServeError",
      (error: HttpServerError.ServeError) => new ListenError({ host: settings.host, port: settings.port, code: listenCode(error.cause) })
    )
  )
})

/** A message about a file names the file. */
const about = (path: string, message: string) => message.startsWith(path) ? message : `${path}: ${message}`

const listenCode = (cause: unknown) => typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : "unknown"

export const run = Command.make(
  "run",
  {
    model: Argument.String("model").pipe(
      Argument.withDescription(
        "Path of a GGUF file, the first part of a split one, or a name in the catalog of models; without it the small bundled model"
      ),
      Argument.optional
    ),
    ...flags,
    config: Flag.String("config").pipe(Flag.withDescription("TOML file of settings"), Flag.optional)
  },
  Effect.fnUntraced(function*({ config, ...given }) {
    const file = yield* readConfigFile(Option.getOrUndefined(config), process.env)
    const settings = yield* Settings.resolve({
      flags: Record.getSomes<string, string | number | boolean | ReadonlyArray<string>>(given),
      environment: process.env,
      file,
      defaultModel: bundledModel
    })
    const found = yield* inCatalog(settings, process.env)
    yield* stopAtOnceOnSecondSignal
    return yield* serve(found).pipe(Effect.provide(Layer.mergeAll(JsonLogger.layer(), Traces.layer)))
  })
).pipe(
  Command.withDescription(
    "Serve a model at http://HOST:PORT/v1. It answers 503 while the model loads; Ctrl-C finishes the running requests, a second one stops at once."
  ),
  Command.withShortDescription("Serve a model")
)
