import { Clock, Context, Deferred, Effect, Layer, type Scope } from "effect"
import { Overloaded } from "../domain/Errors.ts"
import { Settings } from "../Settings.ts"

/** A place in the queue, then a slot. Closing the scope that it was taken in gives it back. */
export interface Ticket {
  /** Waits for the slot; the milliseconds since the ticket was taken. */
  readonly ready: Effect.Effect<number>
  /** Gives the place or the slot back early; harmless when repeated. */
  readonly release: Effect.Effect<void>
}

export interface AdmissionOptions {
  /** Requests that run together. */
  readonly slots: number
  readonly maxWaitingPerTenant: number
  readonly maxWaiting: number
}

interface Waiter {
  readonly tenant: string
  readonly granted: Deferred.Deferred<void>
  readonly since: number
  state: "waiting" | "running" | "done"
  startedAt: number
}

/** Weight of the newest service time in the running mean. */
const meanWeight = 0.2

/** Who runs and who waits: a slot that comes free goes to the tenants in turn, and within one tenant to the oldest request. */
export class Admission extends Context.Service<Admission, {
  /** Takes a slot or a place in the queue at once, or says when to come back. */
  readonly enter: (tenant: string) => Effect.Effect<Ticket, Overloaded, Scope.Scope>
  readonly running: Effect.Effect<number>
  readonly waiting: Effect.Effect<number>
}>()("mashbox/generation/Admission") {
  static readonly layerOptions = (options: AdmissionOptions): Layer.Layer<Admission> => Layer.sync(Admission, () => make(options))

  /** 32 waiting per tenant and 256 in all. */
  static readonly layer: Layer.Layer<Admission, never, Settings> = Layer.effect(
    Admission,
    Settings.useSync((settings) => make({ slots: settings.slots, maxWaitingPerTenant: 32, maxWaiting: 256 }))
  )
}

/** Milliseconds that never run backwards. */
const monotonicMillis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

const make = (options: AdmissionOptions): Admission["Service"] => {
  /** Tenants that wait, in the order of their turns; a tenant without waiters is not in it. */
  const queues = new Map<string, Array<Waiter>>()
  let running = 0
  let waiting = 0
  let meanServiceMs = 2_000

  const retryAfter = (ahead: number) => Math.min(120, Math.max(1, Math.ceil((ahead + 1) * meanServiceMs / options.slots / 1000)))

  const grantNext = (now: number) => {
    while (running < options.slots) {
      const turn = queues.entries().next().value
      if (turn === undefined) return
      const [tenant, queue] = turn
      queues.delete(tenant)
      const waiter = queue.shift()
      if (queue.length > 0) queues.set(tenant, queue)
      if (waiter === undefined) continue
      waiting--
      running++
      waiter.state = "running"
      waiter.startedAt = now
      Deferred.doneUnsafe(waiter.granted, Effect.void)
    }
  }

  const leave = (waiter: Waiter, now: number) => {
    if (waiter.state === "waiting") {
      const queue = queues.get(waiter.tenant) ?? []
      const rest = queue.filter((other) => other !== waiter)
      if (rest.length > 0) queues.set(waiter.tenant, rest)
      else queues.delete(waiter.tenant)
      waiting--
    } else if (waiter.state === "running") {
      running--
      meanServiceMs += meanWeight * (now - waiter.startedAt - meanServiceMs)
      grantNext(now)
    }
    waiter.state = "done"
  }

  return {
    enter: (tenant) =>
      Effect.gen(function*() {
        const now = yield* monotonicMillis
        const queued = queues.get(tenant)
        if (running >= options.slots) {
          if (waiting >= options.maxWaiting) return yield* new Overloaded({ scope: "server", retryAfter: retryAfter(waiting) })
          if ((queued?.length ?? 0) >= options.maxWaitingPerTenant) {
            return yield* new Overloaded({ scope: "tenant", retryAfter: retryAfter((queued?.length ?? 0) * queues.size) })
          }
        }
        const waiter: Waiter = { tenant, granted: Deferred.makeUnsafe(), since: now, state: "waiting", startedAt: now }
        if (queued === undefined) queues.set(tenant, [waiter])
        else queued.push(waiter)
        waiting++
        const release = Effect.map(monotonicMillis, (time) => leave(waiter, time))
        yield* Effect.addFinalizer(() => release)
        grantNext(now)
        return {
          ready: Effect.andThen(
            Deferred.await(waiter.granted),
            Effect.sync(() => waiter.startedAt - waiter.since)
          ),
          release
        }
      }),
    running: Effect.sync(() => running),
    waiting: Effect.sync(() => waiting)
  }
}
