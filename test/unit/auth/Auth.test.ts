import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ApiKeys, parseKeyFile } from "../../../src/auth/ApiKeys.ts"
import { Auth, localTenant } from "../../../src/auth/Auth.ts"
import { Settings, type SettingsValue } from "../../../src/Settings.ts"
import { settings } from "../server/harness.ts"

const auth = (own: Partial<SettingsValue>) =>
  Effect.provide(Auth.layer.pipe(Layer.provide(Layer.succeed(Settings, { ...settings, ...own }))))

const tenantOf = (key: string) => Auth.use((auth) => auth.authenticate({ authorization: `Bearer ${key}`, apiKey: undefined }))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mashbox-auth-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

describe("a key file", () => {
  it("has a key or name:key per line", () => {
    assert.deepStrictEqual(parseKeyFile("# keys\r\nsk-1\n\n  team-a:sk-2  \nteam-a:sk:3\n"), {
      keys: [{ name: undefined, key: "sk-1" }, { name: "team-a", key: "sk-2" }, { name: "team-a", key: "sk:3" }]
    })
  })

  it("reports a bad line by its number", () => {
    for (const bad of ["two words", "name:", ":key", "na me:key", "name:ke y"]) {
      assert.deepStrictEqual(parseKeyFile(`ok\n${bad}`), { badLine: 2 }, bad)
    }
  })
})

describe("ApiKeys", () => {
  it("gives keys of one name one tenant, and nameless ones their own", () => {
    const keys = new ApiKeys([{ name: "a", key: "1" }, { name: "a", key: "2" }, { name: undefined, key: "3" }, {
      name: undefined,
      key: "4"
    }])
    assert.strictEqual(keys.tenant("1"), "a")
    assert.strictEqual(keys.tenant("2"), "a")
    assert.notStrictEqual(keys.tenant("3"), keys.tenant("4"))
    assert.isUndefined(keys.tenant("5"))
    assert.isUndefined(keys.tenant(""))
    assert.notInclude(JSON.stringify(keys), "\"1\"")
  })
})

describe("Auth", () => {
  it.effect("lets everybody in on loopback without keys", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* tenantOf("anything"), localTenant)
    }).pipe(auth({})))

  it.effect("refuses to stand open to other machines", () =>
    Effect.gen(function*() {
      for (const host of ["0.0.0.0", "::", "192.168.1.2", "box.lan"]) {
        const error = yield* Effect.flip(Effect.void.pipe(auth({ host })))
        assert.include(error.message, host)
      }
      yield* Effect.void.pipe(auth({ host: "0.0.0.0", apiKey: "sk" }))
    }))

  it.effect("names what is wrong with a key file", () =>
    Effect.gen(function*() {
      const path = join(yield* folder, "keys")
      const message = Effect.map(Effect.flip(Effect.void.pipe(auth({ apiKeyFile: path }))), (error) => error.message)
      assert.include(yield* message, "cannot be read")
      writeFileSync(path, "# nothing\n")
      assert.include(yield* message, "holds no key")
      writeFileSync(path, "ok\nsecret words\n")
      assert.include(yield* message, "line 2")
      assert.notInclude(yield* message, "secret")
      assert.include((yield* Effect.flip(Effect.void.pipe(auth({ apiKey: "a b" })))).message, "MASHBOX_API_KEY")
    }))

  it.effect("reads the key file again when it changes, and keeps the keys when it becomes unusable", () =>
    Effect.gen(function*() {
      const path = join(yield* folder, "keys")
      writeFileSync(path, "one\n")
      yield* Effect.gen(function*() {
        yield* tenantOf("one")
        assert.strictEqual((yield* Effect.flip(tenantOf("two"))).reason, "Unauthenticated")
        writeFileSync(`${path}.new`, "team:two\n")
        renameSync(`${path}.new`, path)
        assert.strictEqual(yield* tenantOf("two"), "team")
        yield* Effect.flip(tenantOf("one"))
        writeFileSync(path, "not a key file\n")
        assert.strictEqual(yield* tenantOf("two"), "team")
        rmSync(path)
        assert.strictEqual(yield* tenantOf("two"), "team")
        assert.strictEqual(yield* tenantOf("environment"), yield* tenantOf("environment"))
        writeFileSync(path, "three\n")
        chmodSync(path, 0o600)
        yield* tenantOf("three")
      }).pipe(auth({ apiKeyFile: path, apiKey: "environment" }))
    }))
})
