import { assert, describe, it } from "@effect/vitest"
import * as Derivatives from "../../../src/grammar/Derivatives.ts"
import * as Pattern from "../../../src/grammar/Pattern.ts"
import type { PatternOptions } from "../../../src/grammar/PatternSyntax.ts"
import { pick, random } from "../../support/Random.ts"

const ecma: PatternOptions = { dialect: "ecma" }

const fail = (reason: string, message: string, offset: number): never => {
  throw new Error(`${reason} at ${offset}: ${message}`)
}

const found = (source: string, text: string, options = ecma) => Derivatives.matches(Pattern.containing(source, options, fail), text)
const whole = (source: string, text: string, options = ecma) => Derivatives.matches(Pattern.whole(source, options, fail), text)

/** A random expression of what is supported, anchors and lookaheads where a repetition does not contain them. */
const expression = (next: () => number, depth: number, assertions: boolean): string => {
  const inner = (more = assertions) => expression(next, depth - 1, more)
  const atoms = ["a", "b", "c", ".", "\\d", "\\w", "[ab]", "[^a]", "\\s", "[a-c1]", "é", "\\.", "\\u0062", "[\\]\\-x]", "\\x61"] as const
  if (depth === 0) return assertions && next() < 0.15 ? pick(next, ["^", "$"]) : pick(next, atoms)
  switch (Math.floor(next() * 8)) {
    case 0:
    case 1:
    case 2:
      return inner() + inner()
    case 3:
      return `(?:${inner()}|${inner()})`
    case 4:
      return `(${inner(false)})${pick(next, ["*", "+", "?", "*?", "{2}", "{1,2}", "{0,3}?", "{2,}"])}`
    case 5:
      return assertions ? `(?${pick(next, ["=", "!"])}${inner(false)}${next() < 0.3 ? "$" : ""})${inner()}` : inner()
    case 6:
      return `(?<n${Math.floor(next() * 1e9)}>${inner()})`
    default:
      return pick(next, atoms)
  }
}

describe("patterns", () => {
  it("are found where RegExp finds them, and match as a whole where RegExp does", () => {
    const next = random(7)
    let hits = 0
    for (let round = 0; round < 2000; round++) {
      const source = expression(next, 3, true)
      const expected = new RegExp(source, "u")
      const anchored = new RegExp(`^(?:${source})$`, "u")
      for (let index = 0; index < 12; index++) {
        const text = Array.from(
          { length: Math.floor(next() * 6) },
          () => pick(next, ["a", "b", "c", "1", ".", " ", "é", "\n", "x", "]", "😀"])
        ).join("")
        assert.strictEqual(found(source, text), expected.test(text), `${source} in ${JSON.stringify(text)}`)
        assert.strictEqual(whole(source, text), anchored.test(text), `${source} as the whole of ${JSON.stringify(text)}`)
        if (expected.test(text)) hits++
      }
    }
    assert.isAbove(hits, 4000)
  })

  const examples: ReadonlyArray<readonly [source: string, accepted: ReadonlyArray<string>, refused: ReadonlyArray<string>]> = [
    [
      "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
      ["a.b@c.de", "x+y@a-b.org"],
      [
        ".a@b.de",
        "a..b@c.de",
        "a@b",
        "a.@b.de"
      ]
    ],
    ["^(?=.*[A-Z])(?=.*\\d).{8,}$", ["abcdefG1"], ["abcdefgh", "A1"]],
    ["^\\p{Lu}\\p{L}+$", ["Ärger", "Зима"], ["ärger", "A1"]],
    ["^[^]$", ["\n"], ["", "ab"]],
    ["^\\u{1F600}$", ["😀"], ["a"]],
    ["^\\ud83d\\ude00$", ["😀"], ["a"]],
    ["^[\\s\\S]{0,3}$", ["", "a\n😀"], ["abcd"]],
    ["^\\cJ\\0\\t$", ["\n\0\t"], ["J"]],
    ["a{,2}", ["a{,2}"], ["aa"]],
    ["^$", [""], ["\n", "a"]],
    ["(^a|b$)c?", ["ax", "xb", "a"], ["xa", "bx", "bc"]],
    ["^(a|b|$)*x?$", ["", "ab", "abx"], ["c"]]
  ]
  for (const [source, accepted, refused] of examples) {
    it(source, () => {
      for (const text of accepted) assert.isTrue(found(source, text), text)
      for (const text of refused) assert.isFalse(found(source, text), text)
    })
  }

  it("flags and dialects", () => {
    assert.isTrue(whole("straße", "STRASSE".replace("SS", "ß"), { dialect: "ecma", ignoreCase: true }))
    assert.isTrue(whole("[a-c]é", "BÉ", { dialect: "ecma", ignoreCase: true }))
    assert.isTrue(whole("(?i:a)b", "Ab"))
    assert.isFalse(whole("(?i:a)b", "AB"))
    assert.isTrue(whole("(?i)ab", "AB", { dialect: "python" }))
    assert.isTrue(whole("a.b", "a\nb", { dialect: "ecma", dotAll: true }))
    assert.isFalse(whole("a.b", "a\rb"))
    assert.isTrue(whole("a.b", "a\rb", { dialect: "python" }))
    assert.isTrue(whole("\\A(?P<x>a)\\Z", "a", { dialect: "python" }))
    assert.isTrue(whole("[]a]+", "]a", { dialect: "python" }))
  })

  const errors: ReadonlyArray<readonly [source: string, reason: string, offset: number]> = [
    ["a(b", "Invalid", 1],
    ["ab)", "Invalid", 2],
    ["[a", "Invalid", 0],
    ["[b-a]", "Invalid", 2],
    ["a{2,1}", "Invalid", 1],
    ["*a", "Invalid", 0],
    ["a**", "Invalid", 3],
    ["\\q", "Invalid", 0],
    ["\\u12", "Invalid", 0],
    ["\\p{Nope}", "Invalid", 0],
    ["x\\", "Invalid", 1],
    ["a\\b", "Unsupported", 1],
    ["a\\B", "Unsupported", 1],
    ["(a)\\1", "Unsupported", 3],
    ["(?<n>a)\\k<n>", "Unsupported", 7],
    ["(?<=a)b", "Unsupported", 0],
    ["(?<!a)b", "Unsupported", 0],
    ["(?>a)", "Unsupported", 0],
    ["a*+", "Unsupported", 2],
    ["(?m:a)", "Unsupported", 0],
    ["(?:(?!x).)*", "Unsupported", 0],
    ["(?:^a){20}", "Unsupported", 0],
    ["a{2000000}", "TooLarge", 1],
    ["(".repeat(300), "TooLarge", 200]
  ]
  for (const [source, reason, offset] of errors) {
    it(`${reason} at ${offset}: ${source.slice(0, 40)}`, () => {
      assert.throws(() => found(source, ""), `${reason} at ${offset}: `)
    })
  }
})
