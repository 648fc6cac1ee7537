import { Effect, Schema, type Scope } from "effect"
import { chmodSync, closeSync, openSync } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { SettingsError } from "../Settings.ts"
import type { StoredResponse } from "./ResponseStore.ts"

/** Of the tables below; a file of another version is not touched. */
const version = 1

const tables = `
  CREATE TABLE IF NOT EXISTS responses (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    input TEXT NOT NULL,
    items TEXT NOT NULL,
    UNIQUE (tenant, id)
  ) STRICT;
  PRAGMA user_version = ${version};
`

const unusable = (message: string) => new SettingsError({ setting: "responses-db", message })

const reasonOf = (cause: unknown): string => cause instanceof Error ? cause.message : "it is not usable"

/** The tables are there, and the file is one of this version or new. */
const prepare = (database: DatabaseSync, path: string): void => {
  const found = database.prepare("PRAGMA user_version").get()?.["user_version"]
  const foreign = database.prepare("SELECT count(*) AS count FROM sqlite_schema").get()?.["count"]
  if (found !== version && !(found === 0 && foreign === 0)) throw new Error("it is a database of something else")
  // SQLite gives the files that it puts beside this one the same mode.
  chmodSync(path, 0o600)
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; ${tables}`)
}

const text = (value: unknown): string => typeof value === "string" ? value : ""

const readIds = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Schema.String)))

const readInput = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Schema.Record(Schema.String, Schema.Unknown))))

/** Stored responses in a SQLite file that only its owner can read. */
export class ResponseDatabase {
  private readonly database: DatabaseSync
  private readonly onFailure: (action: string, cause: unknown) => void

  private constructor(database: DatabaseSync, onFailure: (action: string, cause: unknown) => void) {
    this.database = database
    this.onFailure = onFailure
  }

  /** Opens the file or makes it; it closes with the scope. A write that fails later is logged, and then the file lacks that change. */
  static readonly open = (path: string): Effect.Effect<ResponseDatabase, SettingsError, Scope.Scope> =>
    Effect.gen(function*() {
      // Loaded only where it is used: it prints an experimental warning.
      const sqlite = yield* Effect.tryPromise({
        try: () => import("node:sqlite"),
        catch: () => unusable("this Node has no SQLite")
      })
      const database = yield* Effect.acquireRelease(
        Effect.try({
          try: () => {
            closeSync(openSync(path, "a", 0o600))
            return new sqlite.DatabaseSync(path, { timeout: 1000 })
          },
          catch: (cause) => unusable(`${path}: ${reasonOf(cause)}`)
        }),
        (opened) => Effect.sync(() => opened.close())
      )
      yield* Effect.try({ try: () => prepare(database, path), catch: (cause) => unusable(`${path}: ${reasonOf(cause)}`) })
      const run = Effect.runForkWith(yield* Effect.context())
      return new ResponseDatabase(database, (action, cause) => {
        run(Effect.logError("stored responses: the file could not be written", { action, reason: reasonOf(cause) }))
      })
    })

  /** Every response, the oldest first. */
  get all(): Effect.Effect<ReadonlyArray<{ readonly tenant: string; readonly response: StoredResponse }>, SettingsError> {
    return Effect.try({
      try: () =>
        this.database.prepare("SELECT tenant, id, body, input, items FROM responses ORDER BY sequence").all().map((row) => ({
          tenant: text(row["tenant"]),
          response: {
            id: text(row["id"]),
            body: text(row["body"]),
            input: readInput(row["input"]),
            itemIds: readIds(row["items"])
          }
        })),
      catch: (cause) => unusable(reasonOf(cause))
    })
  }

  put(tenant: string, { body, id, input, itemIds }: StoredResponse): void {
    this.attempt(
      "put",
      () =>
        this.database.prepare("INSERT OR REPLACE INTO responses (tenant, id, body, input, items) VALUES (?, ?, ?, ?, ?)")
          .run(tenant, id, body, JSON.stringify(input), JSON.stringify(itemIds))
    )
  }

  delete(tenant: string, id: string): void {
    this.attempt("delete", () => this.database.prepare("DELETE FROM responses WHERE tenant = ? AND id = ?").run(tenant, id))
  }

  private attempt(action: string, statement: () => unknown): void {
    try {
      statement()
    } catch (cause) {
      this.onFailure(action, cause)
    }
  }
}
