import { Console, Effect, Record } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as Settings from "../Settings.ts"
import { inCatalog } from "./catalog.ts"
import { readConfigFile } from "./configFile.ts"
import * as ModelReport from "./ModelReport.ts"

/** `mashbox models inspect FILE`. Ends with status 1 where something would not work. */
export const inspect = Command.make(
  "inspect",
  {
    model: Argument.String("model").pipe(
      Argument.withDescription("Path of a GGUF file, the first part of a split one, or a name in the catalog of models")
    ),
    ctx: Flag.Int("ctx").pipe(
      Flag.withDescription("Tokens of each slot that the memory is computed for (the model's own, at most 32768, lowered to what fits)"),
      Flag.optional
    ),
    slots: Flag.Int("slots").pipe(Flag.withDescription("Requests decoded together (4)"), Flag.optional),
    "kv-type": Flag.Literals("kv-type", ["f16", "f32"]).pipe(Flag.withDescription("Type of cached keys and values (f16)"), Flag.optional),
    models: Flag.String("models").pipe(
      Flag.withDescription("Catalog of models ($XDG_CONFIG_HOME/mashbox/models.json where there is one)"),
      Flag.optional
    ),
    json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object"), Flag.withDefault(false))
  },
  Effect.fnUntraced(function*({ json, model, ...given }) {
    const settings = yield* Settings.resolve({
      flags: { model, ...Record.getSomes<string, string | number>(given) },
      environment: process.env,
      file: yield* readConfigFile(undefined, process.env),
      defaultModel: model
    })
    const report = yield* ModelReport.make(yield* inCatalog(settings, process.env))
    yield* Console.log(json ? JSON.stringify(report, undefined, 2) : ModelReport.reportLines(report).join("\n"))
    if (report.problems.length > 0) process.exitCode = 1
  })
).pipe(
  Command.withDescription(
    "Says what a model file holds without loading it: its family and size, its tensors by format, its tokenizer, chat template and " +
      "syntax of tool calls, the memory that it takes as the engine plans it, and everything that would not work. A file that cannot be " +
      "read at all is an error that names the key or tensor. The status is 1 where something would not work, so that scripts can ask."
  ),
  Command.withShortDescription("Say what a model file holds and takes"),
  Command.withExamples([
    { command: "mashbox models inspect Qwen3-8B-Q4_K_M.gguf", description: "All of it" },
    { command: "mashbox models inspect model.gguf --ctx 131072 --slots 2", description: "Memory for two requests of 131 072 tokens" },
    { command: "mashbox models inspect model.gguf --json | jq .problems", description: "For scripts" }
  ])
)
