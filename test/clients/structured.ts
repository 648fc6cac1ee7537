import { assert } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { HttpServer } from "effect/http"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { z } from "zod"
import { Engine } from "../../src/engine/Engine.ts"
import { addonPath, projectRoot } from "../../src/engine/EnginePaths.ts"
import { layerEngineInProcess, layerServerWithoutEngine } from "../../src/Mashbox.ts"
import { Settings } from "../../src/Settings.ts"
import { settings } from "../unit/server/harness.ts"

const demo = join(projectRoot, "models", "mashbox-demo.gguf")

/** Whether the bundled model can be run: it and the addon are there. */
export const isDemoThere = existsSync(demo) && existsSync(addonPath())

export const layerDemo = layerServerWithoutEngine.pipe(
  Layer.provideMerge(layerEngineInProcess),
  Layer.provide(Layer.succeed(Settings, { ...settings, model: demo, slots: 2 })),
  Layer.provide(Logger.layer([]))
)

/** The address of the server, once its model is loaded. */
export const demoUrl = Effect.gen(function*() {
  yield* (yield* Engine).ready
  const { address } = yield* HttpServer.HttpServer
  assert("port" in address)
  return `http://127.0.0.1:${address.port}`
})

/** The model at its best, and where it writes what it can. */
export const samplings: ReadonlyArray<{ readonly temperature: number; readonly seed?: number }> = [{ temperature: 0 }, {
  temperature: 1,
  seed: 7
}]

export const City = z.object({
  name: z.string().min(1).max(12),
  population: z.number().int().min(1).max(99_999_999),
  kind: z.enum(["town", "city"]),
  founded: z.iso.date(),
  tags: z.array(z.string().max(6)).max(2),
  mayor: z.object({ name: z.string().max(8) }).nullable()
})

/** Of keywords that every helper sends on: Anthropic's turn lengths and ranges into descriptions. */
export const Town = z.object({
  kind: z.enum(["town", "city"]),
  founded: z.iso.date(),
  isCapital: z.boolean(),
  mayor: z.object({ party: z.enum(["red", "green"]) }).nullable()
})

export const Weather = z.object({
  city: z.string().min(1).max(12),
  days: z.number().int().min(1).max(14),
  unit: z.enum(["c", "f"]),
  exact: z.boolean().nullable()
})

/** Fails unless every one of an object's partial readings has the fields of the one before it, in their order, and the last is `whole`. */
export const assertGrows = (partials: ReadonlyArray<unknown>, whole: unknown, what?: string): void => {
  const fields = partials.map((partial) => Object.keys(Object(partial)))
  fields.forEach((own, index) => assert.deepStrictEqual(own.slice(0, fields[index - 1]?.length), fields[index - 1] ?? own, what))
  assert.deepStrictEqual(partials.at(-1), whole, what)
}
