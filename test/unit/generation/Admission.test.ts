import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Admission } from "../../../src/generation/Admission.ts"

const layer = (slots: number, maxWaitingPerTenant = 32, maxWaiting = 256) =>
  Effect.provide(Admission.layerOptions({ slots, maxWaitingPerTenant, maxWaiting }))

/** A job that runs for a second once it has its slot. */
const job = (name: string, tenant: string, order: Array<string>) =>
  Effect.gen(function*() {
    const ticket = yield* (yield* Admission).enter(tenant)
    const waited = yield* ticket.ready
    order.push(name)
    yield* Effect.sleep("1 second")
    yield* ticket.release
    return waited
  }).pipe(Effect.scoped)

describe("Admission", () => {
  it.effect("gives slots to the tenants in turn, and to one tenant's requests in order", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const jobs = yield* Effect.forEach(
        [["a1", "a"], ["a2", "a"], ["a3", "a"], ["a4", "a"], ["b1", "b"], ["c1", "c"], ["b2", "b"]] as const,
        ([name, tenant]) => Effect.forkChild(job(name, tenant, order), { startImmediately: true })
      )
      yield* TestClock.adjust("10 seconds")
      const waited = yield* Effect.forEach(jobs, Fiber.join)
      assert.deepStrictEqual(order, ["a1", "a2", "b1", "c1", "a3", "b2", "a4"])
      assert.deepStrictEqual(waited, [0, 1000, 4000, 6000, 2000, 3000, 5000])
    }).pipe(layer(1)))

  it.effect("runs as many as there are slots, and no more", () =>
    Effect.gen(function*() {
      const admission = yield* Admission
      const order: Array<string> = []
      for (let index = 0; index < 5; index++) {
        yield* Effect.forkChild(job(String(index), "a", order), { startImmediately: true })
      }
      assert.strictEqual(yield* admission.running, 3)
      assert.strictEqual(yield* admission.waiting, 2)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* admission.running, 2)
      assert.strictEqual(yield* admission.waiting, 0)
    }).pipe(layer(3)))

  it.effect("refuses a tenant's request beyond its places, but not another tenant's", () =>
    Effect.gen(function*() {
      const admission = yield* Admission
      yield* admission.enter("a")
      yield* admission.enter("a")
      yield* admission.enter("a")
      const refused = yield* Effect.flip(admission.enter("a"))
      assert.strictEqual(refused.scope, "tenant")
      assert.isAtLeast(refused.retryAfter, 1)
      yield* admission.enter("b")
      const full = yield* Effect.flip(admission.enter("c"))
      assert.strictEqual(full.scope, "server")
    }).pipe(Effect.scoped, layer(1, 2, 3)))

  it.effect("asks for a longer wait the longer requests take", () =>
    Effect.gen(function*() {
      const admission = yield* Admission
      const retryAfter = Effect.gen(function*() {
        const running = yield* admission.enter("a")
        const waiting = yield* admission.enter("a")
        const { retryAfter } = yield* Effect.flip(admission.enter("a"))
        yield* waiting.release
        return [running, retryAfter] as const
      })
      const [running, before] = yield* retryAfter
      yield* TestClock.adjust("10 minutes")
      yield* running.release
      const [, after] = yield* retryAfter
      assert.isAbove(after, before)
      assert.isAtMost(after, 120)
    }).pipe(Effect.scoped, layer(1, 1)))

  it.effect("forgets who leaves the queue, and releases once however often it is told", () =>
    Effect.gen(function*() {
      const admission = yield* Admission
      const first = yield* admission.enter("a")
      const scope = yield* Scope.make()
      const gone = yield* admission.enter("b").pipe(Scope.provide(scope))
      const last = yield* admission.enter("c")
      yield* Scope.close(scope, Exit.void)
      yield* gone.release
      assert.strictEqual(yield* admission.waiting, 1)
      yield* first.release
      yield* first.release
      yield* last.ready
      assert.strictEqual(yield* admission.running, 1)
      assert.strictEqual(yield* admission.waiting, 0)
    }).pipe(Effect.scoped, layer(1)))
})
