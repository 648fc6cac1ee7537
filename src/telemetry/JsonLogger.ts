import { Cause, Layer, Logger, References } from "effect"

const isFields = (part: unknown): part is Readonly<Record<string, unknown>> =>
  typeof part === "object" && part !== null && !Array.isArray(part)

/** Name and stack frames of an error; its message may quote what a client sent. */
const failure = (reason: Cause.Reason<unknown>): unknown => {
  if (reason._tag === "Interrupt") return { kind: "interrupt" }
  const error = reason._tag === "Fail" ? reason.error : reason.defect
  if (!(error instanceof Error)) return { kind: typeof error }
  return {
    kind: error.name,
    at: (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line)).slice(0, 8).map((line) => line.trim())
  }
}

/** One JSON object per entry: time, level, message, then the fields of objects among the message's parts. */
export const jsonLogger = (write: (line: string) => void): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, date, logLevel, message }) => {
    const parts = Array.isArray(message) ? message : [message]
    const entry: Record<string, unknown> = {
      time: date.toISOString(),
      level: logLevel.toLowerCase(),
      message: parts.filter((part) => !isFields(part)).map(String).join(" ")
    }
    for (const part of parts) if (isFields(part)) Object.assign(entry, part)
    if (cause.reasons.length > 0) entry["cause"] = cause.reasons.map(failure)
    write(JSON.stringify(entry) + "\n")
  })

/** Logs to stderr from `level` on. */
export const layer = (level: "Debug" | "Info" | "Warn" | "Error" = "Info"): Layer.Layer<never> =>
  Layer.mergeAll(
    Logger.layer([jsonLogger((line) => process.stderr.write(line))]),
    Layer.succeed(References.MinimumLogLevel, level)
  )
