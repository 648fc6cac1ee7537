import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Admission } from "../../../src/generation/Admission.ts"

const layer = (slots: number, maxWaitingPerTenant = 32, maxWaiting = 256) =>
  Effect.provide(Admission.layerOptions({ slots, maxWaitingPerTenant, maxWaiting }))

/** A job that runs for a second once it has its slot. */
const job = (name: string, tenant: string, order: Array<string>, session?: string) =>
  Effect.gen(function*() {
    const ticket = yield* (yield* Admission).enter(tenant, session)
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

  it.effect("gives one tenant's slots to its sessions in turn, and to one session's requests in order", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const jobs = yield* Effect.forEach(
        [["x1", "x"], ["x2", "x"], ["x3", "x"], ["y1", "y"], ["y2", "y"], ["none", undefined], ["x4", "x"]] as const,
        ([name, session]) => Effect.forkChild(job(name, "a", order, session), { startImmediately: true })
      )
      yield* TestClock.adjust("10 seconds")
      yield* Effect.forEach(jobs, Fiber.join)
      assert.deepStrictEqual(order, ["x1", "x2", "y1", "none", "x3", "y2", "x4"])
    }).pipe(layer(1)))

  it.effect("gives a slot to the tenant that has the fewest", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      for (const [name, tenant] of [["a1", "a"], ["a2", "a"], ["b1", "b"], ["a3", "a"], ["b2", "b"]] as const) {
        yield* Effect.forkChild(job(name, tenant, order), { startImmediately: true })
      }
      assert.deepStrictEqual(order, ["a1", "a2", "b1"])
      const admission = yield* Admission
      const late = yield* admission.enter("a")
      assert.strictEqual(yield* admission.waiting, 3)
      yield* late.release
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(order, ["a1", "a2", "b1", "a3", "b2"])
    }).pipe(Effect.scoped, layer(3)))

  for (const slots of [1, 4]) {
    it.effect(`lets a tenant with one request wait two service times at most behind another's 64, with ${slots} slots`, () =>
      Effect.gen(function*() {
        const order: Array<string> = []
        const flood = yield* Effect.forEach(
          Array.from({ length: 64 }, (_, index) => index),
          (index) => Effect.forkChild(Effect.result(job(`a${index}`, "a", order, `session ${index % 5}`)), { startImmediately: true })
        )
        yield* TestClock.adjust("100 millis")
        const one = yield* Effect.forkChild(job("b", "b", order), { startImmediately: true })
        yield* TestClock.adjust("100 seconds")
        assert.isAtMost(yield* Fiber.join(one), 2_000)
        const results = yield* Effect.forEach(flood, Fiber.join)
        assert.strictEqual(results.filter((result) => Result.isFailure(result)).length, 64 - 32 - slots)
      }).pipe(layer(slots)))
  }

  describe("Retry-After", () => {
    /** Seconds that are different for every request, one and a half in the mean. */
    const varied = (index: number) => 0.5 + 2 * ((index * 0.618_034) % 1)

    const scenarios: ReadonlyArray<readonly [name: string, seconds: (index: number) => number, slots: number, sessions: number]> = [
      ["requests that take a second", () => 1, 1, 1],
      ["requests that take 20 seconds", () => 20, 4, 1],
      ["requests that take 0.1 seconds", () => 0.1, 2, 3],
      ["requests of different lengths", varied, 4, 1],
      ["requests of different lengths and sessions", varied, 3, 4]
    ]

    for (const [name, seconds, slots, sessions] of scenarios) {
      it.effect(`is within 25 % of the wait, for ${name}`, () =>
        Effect.gen(function*() {
          /** How long the 33rd waits, where there is a place for it, or is told to, where there is none. */
          const wait = (places: number) =>
            Effect.gen(function*() {
              const admission = yield* Admission
              let index = 0
              const run = (tenant: string) =>
                Effect.gen(function*() {
                  const own = index++
                  const ticket = yield* admission.enter(tenant, `session ${own % sessions}`)
                  const waited = yield* ticket.ready
                  yield* Effect.sleep(`${seconds(own)} seconds`)
                  return waited
                }).pipe(Effect.scoped)
              // The service times are learnt first, as a server has run before it is full.
              yield* Effect.forkChild(Effect.forEach(Array.from({ length: 20 }), () => run("a"), { discard: true }))
              yield* TestClock.adjust("10 minutes")
              for (let left = slots + 32; left > 0; left--) {
                yield* Effect.forkChild(run("a"), { startImmediately: true })
                if (left % 8 === 0) yield* Effect.forkChild(run("b"), { startImmediately: true })
              }
              yield* TestClock.adjust(`${seconds(1) * 300} millis`)
              const last = yield* Effect.forkChild(Effect.result(run("a")), { startImmediately: true })
              yield* TestClock.adjust("10 minutes")
              const result = yield* Fiber.join(last)
              return Result.match(result, { onSuccess: (waited) => waited, onFailure: (error) => error })
            }).pipe(layer(slots, places))
          const told = yield* wait(32)
          const waited = yield* wait(256)
          if (typeof told === "number" || typeof waited !== "number") return assert.fail("one must wait and one be refused")
          assert.isAbove(waited, 0)
          assert.closeTo(told.retryAfterMs ?? Number.NaN, waited, waited / 4)
          assert.strictEqual(told.retryAfter, Math.max(1, Math.ceil((told.retryAfterMs ?? Number.NaN) / 1000)))
        }))
    }
  })

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
