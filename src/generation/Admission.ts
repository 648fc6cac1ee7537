import { Clock, Context, Deferred, Effect, Layer, type Scope } from "effect"
import { Overloaded } from "../domain/Errors.ts"
import { Settings } from "../Settings.ts"
import { FairQueue, type Owner } from "./FairQueue.ts"

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
  readonly owner: Owner
  readonly granted: Deferred.Deferred<void>
  readonly since: number
  state: "waiting" | "running" | "done"
  startedAt: number
}

/** The service time that is assumed until one was measured. */
const firstServiceMs = 2_000

/** Weight of the newest service time in the running mean, once there are enough of them. */
const meanWeight = 0.1

const minRetryAfterMs = 100
const maxRetryAfterMs = 3_600_000

/**
 * Who runs and who waits: a slot that comes free goes to the tenant that has the fewest, those with equally many take turns, and so do the sessions
 * of one tenant; the requests of one session keep their order.
 */
export class Admission extends Context.Service<Admission, {
  /** Takes a slot or a place in the queue at once, or says when to come back. Requests without a session share one. */
  readonly enter: (tenant: string, session?: string) => Effect.Effect<Ticket, Overloaded, Scope.Scope>
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

/** The mean time that a request keeps its slot: of all at first, then mostly of the latest. */
class ServiceTime {
  meanMs = firstServiceMs
  private measured = 0

  add(ms: number): void {
    this.measured++
    this.meanMs += Math.max(meanWeight, 1 / this.measured) * (ms - this.meanMs)
  }

  /** What is left for a request that has run for this long; one that outlasts the mean may go on for a while. */
  left(elapsedMs: number): number {
    return Math.max(this.meanMs - elapsedMs, this.meanMs / 4)
  }
}

/** Milliseconds until a request of `owner` would get a slot if it were queued now, every request taking the mean time. */
const expectedWait = (queue: FairQueue<Waiter>, running: ReadonlySet<Waiter>, owner: Owner, service: ServiceTime, now: number): number => {
  const rehearsal: FairQueue<{ readonly owner: Owner }> = queue.copy()
  const own = { owner }
  rehearsal.push(owner, own)
  const ends = Array.from(running, (waiter) => ({ owner: waiter.owner, at: service.left(now - waiter.startedAt) })).toSorted(
    (left, right) => left.at - right.at
  )
  // Every new request ends after all that run already, or together with them, so the order of `ends` stays.
  for (const end of ends) {
    rehearsal.ended(end.owner)
    const next = rehearsal.take()
    if (next === undefined || next === own) return end.at
    ends.push({ owner: next.owner, at: end.at + service.meanMs })
  }
  return service.meanMs
}

const make = (options: AdmissionOptions): Admission["Service"] => {
  const queue = new FairQueue<Waiter>()
  const running = new Set<Waiter>()
  const service = new ServiceTime()

  const overloaded = (scope: Overloaded["scope"], owner: Owner, now: number) => {
    const retryAfterMs = Math.min(Math.max(Math.ceil(expectedWait(queue, running, owner, service, now)), minRetryAfterMs), maxRetryAfterMs)
    return new Overloaded({ scope, retryAfterMs, retryAfter: Math.max(1, Math.ceil(retryAfterMs / 1000)) })
  }

  const grant = (now: number) => {
    while (running.size < options.slots) {
      const waiter = queue.take()
      if (waiter === undefined) return
      running.add(waiter)
      waiter.state = "running"
      waiter.startedAt = now
      Deferred.doneUnsafe(waiter.granted, Effect.void)
    }
  }

  const leave = (waiter: Waiter, now: number) => {
    if (waiter.state === "waiting") queue.remove(waiter.owner, waiter)
    else if (waiter.state === "running") {
      running.delete(waiter)
      queue.ended(waiter.owner)
      service.add(now - waiter.startedAt)
      grant(now)
    }
    waiter.state = "done"
  }

  return {
    enter: (tenant, session = "") =>
      Effect.gen(function*() {
        const now = yield* monotonicMillis
        const owner: Owner = [tenant, session]
        if (running.size >= options.slots) {
          if (queue.waiting >= options.maxWaiting) return yield* overloaded("server", owner, now)
          if (queue.waitingOf(tenant) >= options.maxWaitingPerTenant) return yield* overloaded("tenant", owner, now)
        }
        const waiter: Waiter = { owner, granted: Deferred.makeUnsafe(), since: now, state: "waiting", startedAt: now }
        queue.push(owner, waiter)
        const release = Effect.map(monotonicMillis, (time) => leave(waiter, time))
        yield* Effect.addFinalizer(() => release)
        grant(now)
        return {
          ready: Effect.andThen(
            Deferred.await(waiter.granted),
            Effect.sync(() => waiter.startedAt - waiter.since)
          ),
          release
        }
      }),
    running: Effect.sync(() => running.size),
    waiting: Effect.sync(() => queue.waiting)
  }
}
