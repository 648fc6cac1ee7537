import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as OpenAiResponses from "../../../src/dialect/OpenAiResponses.ts"
import { storedItems } from "../../../src/dialect/OpenAiResponsesInput.ts"
import { parse } from "../../../src/dialect/WireRequest.ts"

const captures = join(import.meta.dirname, "../../fixtures/captures")

const bodies: ReadonlyArray<unknown> = ["codex", "opencode", "pi", "qwen-code", "sdk-openai", "sdk-vercel-ai"].flatMap((client) =>
  readdirSync(join(captures, client)).filter((name) => /\d-responses\.json$/.test(name)).map((name) =>
    JSON.parse(readFileSync(join(captures, client, name), "utf8")).request.body
  )
)

const hostile: ReadonlyArray<unknown> = [
  null,
  true,
  -1,
  0,
  2 ** 31,
  2 ** 53,
  1e308,
  "",
  "NaN",
  "\ud800",
  "\0",
  "__proto__",
  "constructor",
  "message",
  "function_call",
  "item_reference",
  "x".repeat(3000),
  [],
  [[]],
  {},
  { type: "input_image" },
  { type: "constructor" },
  { role: "user", content: "x" },
  JSON.parse("{\"__proto__\": {\"type\": \"message\", \"role\": \"user\"}}")
]

/** mulberry32 */
const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

/** The value with one of its nodes, somewhere, replaced or removed. */
const mutate = (value: unknown, next: () => number): unknown => {
  const pick = <A>(list: ReadonlyArray<A>) => list[Math.floor(next() * list.length)]
  if (typeof value !== "object" || value === null || next() < 0.15) return pick(hostile)
  if (Array.isArray(value)) {
    if (value.length === 0) return [pick(hostile)]
    const at = Math.floor(next() * value.length)
    return next() < 0.1 ? value.toSpliced(at, 1) : value.with(at, mutate(value[at], next))
  }
  const entries = Object.entries(value)
  const chosen = pick(entries)
  if (chosen === undefined) return pick(hostile)
  const [name] = chosen
  return Object.fromEntries(entries.flatMap(([key, own]) => key !== name ? [[key, own]] : next() < 0.1 ? [] : [[key, mutate(own, next)]]))
}

const stored = { items: () => [{ type: "message", role: "user", content: "before" }], item: () => undefined }

describe("requests that are almost right", () => {
  it("are answered or refused by a field's name, and never throw", () => {
    const next = random(20_261_130)
    let accepted = 0
    let refused = 0
    for (let round = 0; round < 6000; round++) {
      let body = bodies[round % bodies.length]
      for (let change = 0; change <= round % 3; change++) body = mutate(body, next)
      const text = JSON.stringify(body)
      const result = Result.flatMap(
        parse(text),
        (wire) => OpenAiResponses.decode(wire, { tenant: "t", session: undefined, randomSeed: 1, stored })
      )
      if (Result.isFailure(result)) {
        refused++
        assert.include(["InvalidRequest", "UnsupportedFeature"], result.failure._tag, text)
        continue
      }
      accepted++
      const { ignored, items, prompt } = result.success
      assert.isTrue(JSON.stringify(prompt.conversation.messages).isWellFormed())
      for (const message of prompt.conversation.messages) {
        assert.isTrue(message.content === null || typeof message.content === "string", text)
        assert.isTrue(message.content?.isWellFormed() ?? true, text)
      }
      for (const name of ignored) assert.match(name, /^[\w.-]+$/)
      for (const item of storedItems(items, (prefix, index) => `${prefix}_${index}`)) {
        assert.isTrue(typeof item["id"] === "string" && !item["id"].includes("native code"), text)
      }
    }
    assert.isAbove(accepted, 500)
    assert.isAbove(refused, 500)
  })
})
