import { Context, type Effect } from "effect"

/** Whether the server is closing: it finishes what runs and takes nothing new. */
export class Draining extends Context.Service<Draining, {
  readonly now: () => boolean
  /** Waits for it. */
  readonly begun: Effect.Effect<void>
}>()("mashbox/server/Draining") {}
