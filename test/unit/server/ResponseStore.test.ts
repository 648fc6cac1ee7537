import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ResponseStore, sizeOf, type StoredResponse, storeLimits } from "../../../src/server/ResponseStore.ts"

const response = (id: string, length = 10): StoredResponse => ({
  id,
  body: JSON.stringify("b".repeat(length)),
  input: [],
  itemIds: [`msg_${id}`]
})

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mashbox-store-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** Opens, uses and closes a store. */
const using = <A>(path: string, use: (store: ResponseStore["Service"]) => A, limits = storeLimits) =>
  Effect.scoped(Effect.map(ResponseStore.make({ limits, path }), use))

describe("in memory", () => {
  it.effect("gives back what was put, to its tenant alone", () =>
    Effect.gen(function*() {
      const store = yield* ResponseStore.make({ limits: storeLimits, path: undefined })
      store.put("a", response("r"))
      assert.deepStrictEqual(store.get("a", "r"), response("r"))
      assert.deepStrictEqual(store.owner("a", "msg_r"), response("r"))
      assert.isUndefined(store.get("b", "r"))
      assert.isUndefined(store.owner("b", "msg_r"))
      assert.isFalse(store.delete("b", "r"))
      assert.isTrue(store.delete("a", "r"))
      assert.isFalse(store.delete("a", "r"))
      assert.isUndefined(store.owner("a", "msg_r"))
    }))

  it.effect("forgets the least recently used, by number, one tenant apart from the other", () =>
    Effect.gen(function*() {
      const store = yield* ResponseStore.make({ limits: { responses: 2, bytes: 1e6 }, path: undefined })
      store.put("b", response("other"))
      store.put("a", response("1"))
      store.put("a", response("2"))
      store.get("a", "1")
      store.put("a", response("3"))
      assert.isUndefined(store.get("a", "2"))
      assert.isUndefined(store.owner("a", "msg_2"))
      assert.isDefined(store.get("a", "1"))
      assert.isDefined(store.get("a", "3"))
      assert.isDefined(store.get("b", "other"))
    }))

  it.effect("keeps to its bytes, and keeps nothing that is too large alone", () =>
    Effect.gen(function*() {
      const bytes = 3 * sizeOf(response("1", 100))
      const store = yield* ResponseStore.make({ limits: { responses: 100, bytes }, path: undefined })
      for (const id of ["1", "2", "3", "4", "5"]) store.put("a", response(id, 100))
      assert.deepStrictEqual(["1", "2", "3", "4", "5"].filter((id) => store.get("a", id) !== undefined), ["3", "4", "5"])
      store.put("a", response("huge", 10_000))
      assert.isUndefined(store.get("a", "huge"))
      assert.isDefined(store.get("a", "5"))
      for (let round = 0; round < 50; round++) store.put("a", response("5", 100))
      assert.isDefined(store.get("a", "3"))
    }))

  it.effect("an item that came again belongs to the newest response, and deleting the older one leaves it", () =>
    Effect.gen(function*() {
      const store = yield* ResponseStore.make({ limits: storeLimits, path: undefined })
      store.put("a", { ...response("1"), itemIds: ["shared"] })
      store.put("a", { ...response("2"), itemIds: ["shared"] })
      store.delete("a", "1")
      assert.strictEqual(store.owner("a", "shared")?.id, "2")
    }))
})

describe("in a file", () => {
  it.effect("outlives the server, with tenants, items and deletions", () =>
    Effect.gen(function*() {
      const path = join(yield* temporary, "responses.db")
      yield* using(path, (store) => {
        store.put("a", response("1"))
        store.put("b", response("2"))
        store.put("a", response("gone"))
        store.delete("a", "gone")
      })
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      yield* using(path, (store) => {
        assert.deepStrictEqual(store.get("a", "1"), response("1"))
        assert.deepStrictEqual(store.owner("b", "msg_2"), response("2"))
        assert.isUndefined(store.get("a", "2"))
        assert.isUndefined(store.get("a", "gone"))
      })
    }))

  it.effect("is bounded like the memory, also when it is opened with smaller bounds", () =>
    Effect.gen(function*() {
      const path = join(yield* temporary, "responses.db")
      yield* using(path, (store) => {
        for (let index = 0; index < 10; index++) store.put("a", response(String(index)))
      })
      yield* using(path, (store) => assert.isDefined(store.get("a", "9")), { responses: 3, bytes: 1e6 })
      yield* using(path, (store) => {
        assert.deepStrictEqual(Array.from({ length: 10 }, (_, index) => String(index)).filter((id) => store.get("a", id)), ["7", "8", "9"])
      })
    }))

  it.effect("sidecar files are as closed as the file", () =>
    Effect.gen(function*() {
      const path = join(yield* temporary, "responses.db")
      const scope = yield* Scope.make()
      const store = yield* Scope.provide(ResponseStore.make({ limits: storeLimits, path }), scope)
      store.put("a", response("1"))
      for (const suffix of ["", "-wal", "-shm"]) assert.strictEqual(statSync(path + suffix).mode & 0o777, 0o600, suffix)
      yield* Scope.close(scope, Exit.void)
    }))

  it.effect("refuses a file that is something else, by the setting's name, and leaves it alone", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const text = join(folder, "notes.txt")
      const notes = "these are notes, no database at all".repeat(100)
      writeFileSync(text, notes, { mode: 0o644 })
      const error = yield* Effect.flip(Effect.scoped(ResponseStore.make({ limits: storeLimits, path: text })))
      assert.strictEqual(error.setting, "responses-db")
      assert.deepStrictEqual([readFileSync(text, "utf8"), statSync(text).mode & 0o777], [notes, 0o644])
      const missing = yield* Effect.flip(Effect.scoped(ResponseStore.make({ limits: storeLimits, path: join(folder, "no", "such") })))
      assert.strictEqual(missing.setting, "responses-db")
    }))
})
