import { assert } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { HttpServer } from "effect/http"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Engine } from "../../src/engine/Engine.ts"
import { addonPath, projectRoot } from "../../src/engine/EnginePaths.ts"
import { layerEngineInProcess, layerServerWithoutEngine } from "../../src/Mashbox.ts"
import { Settings } from "../../src/Settings.ts"
import { settings } from "../unit/server/harness.ts"

const demo = join(projectRoot, "models", "mashbox-demo.gguf")

/** Whether the bundled model can be run: it and the addon are there. */
export const isDemoThere = existsSync(demo) && existsSync(addonPath())

/** For the title of what needs the model. */
export const demoNeeds = isDemoThere ? "" : " (needs the model and the built addon)"

/** The server with the bundled model. */
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
