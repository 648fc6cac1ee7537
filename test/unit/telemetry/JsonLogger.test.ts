import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Logger } from "effect"
import { jsonLogger } from "../../../src/telemetry/JsonLogger.ts"

const logged = (effect: Effect.Effect<void>) => {
  const lines: Array<string> = []
  return Effect.as(effect, lines).pipe(Effect.provide(Logger.layer([jsonLogger((line) => lines.push(line))])))
}

describe("JsonLogger", () => {
  it.effect("writes one JSON object per line, fields beside the message", () =>
    Effect.gen(function*() {
      const lines = yield* logged(Effect.logWarning("a\nb", { status: 200, nested: { x: 1 } }))
      assert.strictEqual(lines.length, 1)
      assert.isTrue(lines[0]?.endsWith("}\n"))
      const { time, ...entry } = JSON.parse(lines[0] ?? "")
      assert.isFalse(Number.isNaN(Date.parse(time)))
      assert.deepStrictEqual(entry, { level: "warn", message: "a\nb", status: 200, nested: { x: 1 } })
    }))

  it.effect("tells the kind and place of a failure, never its message", () =>
    Effect.gen(function*() {
      const lines = yield* logged(Effect.logError("defect", Cause.die(new TypeError("canary prompt"))))
      assert.notInclude(lines[0], "canary")
      const [cause] = JSON.parse(lines[0] ?? "").cause
      assert.strictEqual(cause.kind, "TypeError")
      assert.isAbove(cause.at.length, 0)
    }))
})
