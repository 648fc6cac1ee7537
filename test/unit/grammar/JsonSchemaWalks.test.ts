import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { compile } from "../../../src/grammar/JsonSchema.ts"
import { GrammarMatcher } from "../../support/GrammarMatcher.ts"
import { GrammarWalk } from "../../support/GrammarWalk.ts"
import { random } from "../../support/Random.ts"
import { randomSchema, randomValue } from "../../support/RandomSchema.ts"
import { valid } from "../../support/SchemaOracle.ts"

const schemas = 2000
const walks = 20

describe("random schemas", () => {
  it(
    "every text of the grammar is a value of the schema, and the grammar has every value in its canonical spelling",
    { timeout: 240_000 },
    () => {
      const next = random(20261130)
      const counts = { compiled: 0, refused: 0, unsatisfiable: 0, walks: 0, values: 0 }
      while (counts.compiled < schemas) {
        const schema = randomSchema(next)
        const result = compile(schema, { order: "free", whitespace: "compact" })
        const values = Array.from({ length: 10 }, () => randomValue(next))
        if (Result.isFailure(result)) {
          const { reason } = result.failure
          assert.notStrictEqual(reason, "Invalid", `${JSON.stringify(schema)}: ${result.failure.message}`)
          if (reason === "Unsatisfiable") {
            counts.unsatisfiable++
            for (const value of values) {
              assert.isFalse(
                valid(schema, value),
                `${JSON.stringify(schema)} has ${JSON.stringify(value)}`
              )
            }
          } else counts.refused++
          continue
        }
        counts.compiled++
        const walk = new GrammarWalk(result.success, next)
        for (let index = 0; index < walks; index++) {
          const text = walk.text()
          assert.isTrue(valid(schema, JSON.parse(text)), `${JSON.stringify(schema)} has no ${text}`)
          counts.walks++
        }
        const matcher = new GrammarMatcher(result.success)
        for (const value of values) {
          const text = JSON.stringify(value)
          assert.strictEqual(matcher.matches(text), valid(schema, value), `${JSON.stringify(schema)} and ${text}`)
          if (valid(schema, value)) counts.values++
        }
      }
      assert.strictEqual(counts.walks, schemas * walks)
      assert.isAbove(counts.values, 2000)
      assert.isBelow(counts.refused, counts.compiled / 3)
    }
  )
})
