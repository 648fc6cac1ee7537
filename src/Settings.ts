import { Context } from "effect"

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
  readonly apiKeyFile: string | undefined
  /** From MASHBOX_API_KEY. */
  readonly apiKey: string | undefined
}

export class Settings extends Context.Service<Settings, SettingsValue>()("mashbox/Settings") {}
