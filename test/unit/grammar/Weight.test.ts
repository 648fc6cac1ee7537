import { assert, describe, it } from "@effect/vitest"
import { Scale } from "../../../src/grammar/Weight.ts"

const weigh = (...values: ReadonlyArray<unknown>) => {
  const scale = new Scale()
  return values.map((value) => scale.add(value)).at(-1)
}

const nested = (levels: number): unknown => {
  let schema: unknown = { type: "string" }
  for (let level = 0; level < levels; level++) schema = { items: schema }
  return schema
}

const small = {
  type: "object",
  properties: { a: { type: "string", maxLength: 20 }, b: { anyOf: [{ type: "null" }, { type: "integer" }] } }
}

describe("the weight of a request's schemas", () => {
  it("is light for small plain schemas, whatever their properties are called", () => {
    assert.strictEqual(weigh(small), "light")
    assert.strictEqual(weigh({ properties: { pattern: { type: "string" }, format: { enum: ["a"] } } }), "light")
    assert.strictEqual(weigh(undefined), "light")
  })

  it("is heavy for many values, long texts, and keywords whose cost their size does not show", () => {
    assert.strictEqual(weigh(...Array.from({ length: 20 }, () => small)), "heavy")
    assert.strictEqual(weigh({ description: "x".repeat(40_000) }), "heavy")
    for (const own of [{ pattern: "a" }, { format: "date" }, { $ref: "#" }, { oneOf: [] }, { maxLength: 2000 }, { multipleOf: 3 }]) {
      assert.strictEqual(weigh({ items: own }), "heavy", JSON.stringify(own))
    }
    assert.strictEqual(new Scale().addProgram("a+"), "heavy")
  })

  it("is too large for more than can be enforced, without recursion", () => {
    assert.strictEqual(weigh(nested(1000)), "heavy")
    assert.strictEqual(weigh(nested(100_000)), "tooLarge")
    assert.strictEqual(weigh({ enum: Array.from({ length: 10_000 }, (_, index) => index) }), "heavy")
    assert.strictEqual(weigh({ enum: Array.from({ length: 200_000 }, (_, index) => index) }), "tooLarge")
    assert.strictEqual(weigh({ const: "x".repeat(10_000_000) }), "tooLarge")
    assert.strictEqual(weigh({ properties: { ["x".repeat(10_000_000)]: true } }), "tooLarge")
    assert.strictEqual(weigh(JSON.parse("{\"maximum\": 1e400}")), "tooLarge")
    const half = { enum: Array.from({ length: 60_000 }, (_, index) => index) }
    assert.strictEqual(weigh(half), "heavy")
    assert.strictEqual(weigh(half, half), "tooLarge")
  })
})
