import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as StopStrings from "../../../src/generation/StopStrings.ts"

/** All of the text at once: where the first stop string to be complete begins, and which one it is. */
const naive = (text: string, stops: ReadonlyArray<string>): { readonly text: string; readonly matched: string | undefined } => {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.filter((stop) => stop !== "" && text.slice(0, end).endsWith(stop)).toSorted((a, b) => b.length - a.length)[0]
    if (found !== undefined) return { text: text.slice(0, end - found.length), matched: found }
  }
  return { text, matched: undefined }
}

/** The longest end of a text that a stop string begins with. */
const heldBack = (text: string, stops: ReadonlyArray<string>): number => {
  for (let length = text.length; length > 0; length--) {
    if (stops.some((stop) => stop.length > length && stop.startsWith(text.slice(text.length - length)))) return length
  }
  return 0
}

const stream = (deltas: ReadonlyArray<string>, stops: ReadonlyArray<string>) => {
  const matcher = StopStrings.make(stops)
  let text = ""
  let seen = ""
  let matched: string | undefined
  for (const delta of deltas) {
    const result = matcher.push(delta)
    text += result.text
    seen += delta
    if (matched !== undefined) assert.deepEqual(result, { text: "" })
    matched ??= result.matched
    if (matched === undefined) assert.strictEqual(text, seen.slice(0, seen.length - heldBack(seen, stops)))
  }
  return { text: text + matcher.end(), matched }
}

/** Every way to cut a text into pieces. */
const splits = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from({ length: 2 ** Math.max(text.length - 1, 0) }, (_, mask) => {
    const pieces: Array<string> = []
    let start = 0
    for (let at = 1; at < text.length; at++) {
      if ((mask >> (at - 1)) & 1) {
        pieces.push(text.slice(start, at))
        start = at
      }
    }
    pieces.push(text.slice(start))
    return pieces
  })

describe("StopStrings", () => {
  it("cuts before the stop string, however the text was cut", () => {
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["abcabdab", ["abd"]],
      ["aaaaab", ["aab"]],
      ["aaaa", ["aaaaa"]],
      ["x\n\nUser: y", ["\n\nUser:", "\n\nSystem:"]],
      ["ababcab", ["abc", "babca", "zz"]],
      ["one two", ["two", "o t"]],
      ["mississi", ["issip", "ssis", "sis"]],
      ["👋🏽 a👋b", ["👋b", "👋🏾"]],
      ["nothing", []],
      ["", ["a"]]
    ]
    for (const [text, stops] of cases) {
      const expected = naive(text, stops)
      for (const deltas of splits(text.slice(0, 12))) assert.deepEqual(stream(deltas, stops), expected, JSON.stringify(deltas))
    }
  })

  it.prop(
    "equals a search in the whole text",
    {
      deltas: Schema.Array(Schema.String.check(Schema.isPattern(/^[ab]{0,4}$/))),
      stops: Schema.Array(Schema.String.check(Schema.isPattern(/^[ab]{0,5}$/)))
    },
    ({ deltas, stops }) => {
      assert.deepEqual(stream(deltas, stops), naive(deltas.join(""), stops))
    },
    { arbitrary: { runs: 2000 } }
  )

  it("prefers the longest of stop strings that end together", () => {
    assert.deepEqual(StopStrings.make(["b", "ab", "cab"]).push("xab"), { text: "x", matched: "ab" })
  })

  it("ignores stop strings that no text contains", () => {
    const matcher = StopStrings.make(["", "\udc4b", "a\ud83d"])
    assert.deepEqual(matcher.push("a👋"), { text: "a👋" })
    assert.strictEqual(matcher.end(), "")
  })

  it("says nothing after a match or the end", () => {
    const matcher = StopStrings.make(["stop"])
    assert.deepEqual(matcher.push("go st"), { text: "go " })
    assert.deepEqual(matcher.push("op and more"), { text: "", matched: "stop" })
    assert.deepEqual(matcher.push("more"), { text: "" })
    assert.strictEqual(matcher.end(), "")
    const ended = StopStrings.make(["stop"])
    assert.deepEqual(ended.push("st"), { text: "" })
    assert.strictEqual(ended.end(), "st")
    assert.deepEqual(ended.push("op"), { text: "" })
  })

  it("is linear for texts of nearly a stop string", () => {
    const near = "a".repeat(100_000)
    const matcher = StopStrings.make([`${near}b`, `a${near}c`, `${near.slice(1)}d`])
    let length = 0
    for (let i = 0; i < 400_000; i++) length += matcher.push("a").text.length
    assert.strictEqual(length, 400_000 - 100_001)
    assert.strictEqual(matcher.push("b").matched, `${near}b`)
  })
})
