import { Command } from "effect/cli"
import { inspect } from "./modelsInspect.ts"

export const models = Command.make("models").pipe(
  Command.withDescription("Looks at model files."),
  Command.withSubcommands([inspect])
)
