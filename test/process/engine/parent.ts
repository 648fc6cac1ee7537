/** A server that has nothing but an engine: prints the worker's process id once the engine is ready, and waits to be killed. */
import { Effect } from "effect"
import { startEngine, workerPid } from "./harness.ts"

const [, , model, addon] = process.argv

const program = Effect.gen(function*() {
  const engine = yield* startEngine(model ?? "", { addon: addon ?? "" })
  yield* engine.ready
  console.log(yield* workerPid(engine))
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(program))
