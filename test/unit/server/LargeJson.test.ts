import { assert, describe, it } from "@effect/vitest"
import { JsonError, parseLarge } from "../../../src/server/LargeJson.ts"

const parse = (text: string | Uint8Array, bounds = { depth: 64, values: 1e6 }): unknown => {
  const parser = parseLarge(Buffer.from(text as string), bounds)
  let step = parser.next()
  while (step.done !== true) step = parser.next()
  return step.value
}

const outcome = (run: () => unknown): string => {
  try {
    return JSON.stringify(run()) ?? "undefined"
  } catch {
    return "refused"
  }
}

/** Numbers from 0 to below 1 that are the same in every run. */
const random = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A document with members around every size that matters: far below a piece, near one, and of several. */
const document = (next: () => number, depth = 0): unknown => {
  const kind = next()
  const size = () => [1, 3, 40, 50, 3_000, 65_500 + Math.floor(next() * 80), 140_000][Math.floor(next() * 7)] ?? 1
  const letters = ["a", "\"", "\\", "\n", "é", "語", "😀", "\ud800", "\u0000", " ", "{", "]", ","]
  const text = (length: number) => {
    const unit = Array.from({ length: 1 + Math.floor(next() * 6) }, () => letters[Math.floor(next() * letters.length)]).join("")
    return unit.repeat(Math.ceil(length / unit.length))
  }
  if (depth > 4 || kind < 0.3) return text(size())
  if (kind < 0.4) return [0, -1.5e300, true, false, null, 123456789][Math.floor(next() * 6)]
  const members = Array.from({ length: Math.floor(next() * 6) }, () => document(next, depth + 1))
  if (kind < 0.7) return [...members, ...Array.from({ length: next() < 0.2 ? 30_000 : 0 }, (_, index) => index)]
  return Object.fromEntries(
    members.map((member, index) => [next() < 0.1 ? "__proto__" : next() < 0.05 ? text(70_000) : `k${index}`, member])
  )
}

describe("parseLarge", () => {
  it("reads what JSON.parse reads, spaced or not", () => {
    for (let seed = 1; seed <= 120; seed++) {
      const value = document(random(seed))
      for (const space of [undefined, 1]) {
        const text = JSON.stringify(value, undefined, space)
        assert.isTrue(outcome(() => parse(text)) === outcome(() => JSON.parse(text)), `seed ${seed}`)
      }
      const escaped = JSON.stringify(value).replaceAll(
        /[é語😀]/gu,
        (char) => char.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")
      )
      assert.isTrue(outcome(() => parse(escaped)) === JSON.stringify(JSON.parse(escaped)), `escaped, seed ${seed}`)
    }
  })

  it("refuses what JSON.parse refuses, wherever the damage is", () => {
    const next = random(7)
    const long = "x".repeat(66_000)
    const base = JSON.stringify({
      a: [1, { b: long, c: [long, [], {}, true] }, ...Array.from({ length: 9_000 }, (_, index) => ({ index }))],
      d: long
    })
    const marks = [",", ":", "\"", "[", "]", "{", "}", "\\", " ", "1", "x", "\u0001"]
    let refused = 0
    for (let round = 0; round < 300; round++) {
      const at = next() < 0.5 ? Math.floor(next() * 40) : base.length - 1 - Math.floor(next() * 66_100)
      const mark = marks[Math.floor(next() * marks.length)] ?? ""
      const damaged = base.slice(0, at) + mark + base.slice(at + (next() < 0.5 ? 1 : 0))
      const expected = outcome(() => JSON.parse(damaged))
      if (expected === "refused") refused++
      assert.isTrue(outcome(() => parse(damaged)) === expected, `${mark} at ${at}`)
    }
    assert.isAtLeast(refused, 100)
    for (let cut = 1; cut < base.length; cut += 997) assert.throws(() => parse(base.slice(0, cut)), JsonError)
  })

  it("refuses small wrong texts as JSON.parse does", () => {
    for (
      const text of [
        "",
        " ",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\" 1}",
        "1 2",
        "nul",
        "\"",
        "\"\\",
        "[]]",
        "{}x",
        "01",
        "+1",
        "\"\n\"",
        "[1],",
        "\ufeff[1",
        "[\"\\u12\"]",
        "{\"a\":1 \"b\":2}",
        "{1:2}"
      ]
    ) assert.strictEqual(outcome(() => parse(text)), outcome(() => JSON.parse(text)), text)
    for (const text of ["1", "null", "\"a\"", " [ ] ", "{ }", "[[],{}]", "{\"a\":{\"b\":[]}}", "-0.5e3", "{\"a\":1,\"a\":2}"]) {
      assert.strictEqual(outcome(() => parse(text)), outcome(() => JSON.parse(text)), text)
    }
  })

  it("keeps __proto__ a member like others, in small and in large objects", () => {
    for (const filler of ["", "x".repeat(70_000)]) {
      const value = parse(`{"filler":"${filler}","__proto__":{"polluted":"${filler}"}}`)
      assert.isTrue(Object.hasOwn(value as object, "__proto__"))
      assert.isUndefined((value as { readonly polluted?: string }).polluted)
    }
    assert.isUndefined(Object.getOwnPropertyDescriptor(Object.prototype, "polluted"))
  })

  it("refuses deep nesting before it gets deep, and bytes that are no UTF-8", () => {
    assert.throws(() => parse("[".repeat(1_000_000)), /deeper than 64/)
    assert.throws(() => parse(`{"a":`.repeat(100_000)), /deeper than 64/)
    assert.throws(() => parse(`[${`["${"x".repeat(70_000)}",`.repeat(70)}`), /deeper than 64/)
    assert.isArray(parse("[".repeat(64) + "]".repeat(64)))
    assert.throws(() => parse("[".repeat(65) + "]".repeat(65)), /deeper than 64/)
    assert.throws(() => parse(Buffer.concat([Buffer.from(`{"a":"${"x".repeat(100_000)}`), Buffer.of(0xff), Buffer.from("\"}")])), /UTF-8/)
    assert.throws(() => parse("1".repeat(100_000)), /number that is too long/)
  })

  it("refuses more values than it may hold, numbers of lists not counted", () => {
    const parses = (value: unknown, values: number) => parse(JSON.stringify(value), { depth: 64, values })
    const long = "x".repeat(70_000)
    for (
      const [value, count] of [
        [Array.from({ length: 100_000 }, (_, index) => index), 1],
        [Array.from({ length: 30_000 }, () => "a"), 30_001],
        [Array.from({ length: 30_000 }, () => ({ role: "user", content: [1, 2] })), 150_001],
        [Object.fromEntries(Array.from({ length: 30_000 }, (_, index) => [`member ${index}`, index])), 30_001],
        [[long, long], 3]
      ] as const
    ) {
      // Lists and objects that are read in pieces count once for each piece.
      const pieces = JSON.stringify(value).length / (32 * 1024)
      assert.deepStrictEqual(parses(value, count + pieces), value)
      assert.throws(() => parses(value, count - 2), /holds more than/)
    }
  })

  it("takes many small steps for a large document", () => {
    const text = JSON.stringify({
      messages: Array.from({ length: 50_000 }, (_, index) => ({ role: "user", content: `message ${index}` })),
      text: "é".repeat(2_000_000)
    })
    let steps = 0
    const parser = parseLarge(Buffer.from(text), { depth: 64, values: 1e6 })
    while (parser.next().done !== true) steps++
    assert.isAtLeast(steps, Buffer.byteLength(text) / (64 * 1024) - 2)
  })
})
