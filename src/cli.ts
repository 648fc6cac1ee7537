import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Runtime } from "effect"
import { CliConfig, Command, GlobalFlag } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }
import { reportFailure } from "./cli/Failure.ts"
import { models } from "./cli/models.ts"
import { run } from "./cli/run.ts"
import { disableMaglev } from "./Maglev.ts"

disableMaglev()

const mashbox = Command.make("mashbox").pipe(
  Command.withDescription(
    "Serves a GGUF model on this machine to any OpenAI client.\n\n" +
      "Every flag of `run` can also be set as MASHBOX_NAME in the environment (MASHBOX_PORT, MASHBOX_KV_TYPE …) or under its own name in a " +
      "TOML file (--config, else $XDG_CONFIG_HOME/mashbox/config.toml). A flag wins over the environment, the environment over the file."
  ),
  Command.withExamples([
    { command: "mashbox run", description: "Serve the small bundled model at http://127.0.0.1:8000" },
    { command: "mashbox run ~/models/Qwen3-0.6B-Q4_K_M.gguf", description: "Serve a model of your own" },
    { command: "mashbox run model.gguf --ctx 32768 --slots 2", description: "Two requests at once, 32 768 tokens each" },
    { command: "mashbox models inspect model.gguf --ctx 32768", description: "What a file holds, what it takes, what would not work" },
    { command: "MASHBOX_API_KEY=secret mashbox run model.gguf --host 0.0.0.0", description: "Serve the local network, with a key" }
  ]),
  Command.withSubcommands([run, models])
)

/** A stop that was asked for is a success; `process.exit` also ends what a request may have left behind. */
const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? process.exit(0) : Runtime.defaultTeardown(exit, onExit)

// Started by the launcher on another Node: end with it, also when it is killed.
process.once("disconnect", () => process.kill(process.pid, "SIGTERM"))
process.channel?.unref()

mashbox.pipe(
  Command.run({ version: packageJson.version }),
  Effect.tapCause(reportFailure),
  Effect.provide([NodeServices.layer, CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })]),
  (program) => NodeRuntime.runMain(program, { disableErrorReporting: true, teardown })
)
