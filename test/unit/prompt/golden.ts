import { existsSync, readFileSync } from "node:fs"
import { readJson } from "../../../src/prompt/jinja/Json.ts"
import { type Text, textOf } from "../../../src/prompt/jinja/MarkedText.ts"
import { Protection, type RunOptions } from "../../../src/prompt/jinja/Run.ts"
import { Dict, type Value } from "../../../src/prompt/jinja/Values.ts"

/** Committed cases, and the folder with all real templates and their renders, where it is present. */
export const committed = "test/fixtures/golden/templates"
export const shared = "../shared/golden/templates"
export const hasShared = existsSync(`${shared}/renders`)

/** The clock of the golden renders, in the local time zone. */
export const goldenNow = new Date(2026, 0, 15, 12, 0, 0).getTime()

export const options: RunOptions = { steps: 5_000_000, textLength: 50_000_000, now: goldenNow, protection: Protection.none }

export const load = (path: string, marked = false): Value => readJson(readFileSync(path, "utf8"), marked)

export const dictOf = (value: Value | undefined): Dict => {
  if (!(value instanceof Dict)) throw new Error("expected an object")
  return value
}

export const field = (value: Value | undefined, name: string): Value | undefined => dictOf(value).get(name)

export const text = (value: Value | undefined): string => {
  if (typeof value !== "string") throw new Error("expected a string")
  return value
}

export const list = (value: Value | undefined): ReadonlyArray<Value> => {
  if (!Array.isArray(value)) throw new Error("expected a list")
  return value
}

/** Top-level variables of a golden object of strings and other values. */
export const variables = (value: Value | undefined): Array<readonly [string, Value]> =>
  Array.from(dictOf(value).entries, ([name, each]) => [String(name), each] as const)

export const outcome = (render: () => Text): string | { readonly error: string } => {
  try {
    return textOf(render())
  } catch (cause) {
    return { error: cause instanceof Error ? `${cause.constructor.name}: ${cause.message}` : String(cause) }
  }
}
