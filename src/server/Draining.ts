import { Context } from "effect"

/** Whether the server is closing: it finishes what runs and takes nothing new. */
export class Draining extends Context.Service<Draining, {
  readonly now: () => boolean
}>()("mashbox/server/Draining") {}
