import { assert } from "@effect/vitest"
import { z } from "zod"

/** The model at its best, and where it writes what it can. */
export const samplings: ReadonlyArray<{ readonly temperature: number; readonly seed?: number }> = [{ temperature: 0 }, {
  temperature: 1,
  seed: 7
}]

export const City = z.object({
  name: z.string().min(1).max(12),
  population: z.number().int().min(1).max(99_999_999),
  kind: z.enum(["town", "city"]),
  founded: z.iso.date(),
  tags: z.array(z.string().max(6)).max(2),
  mayor: z.object({ name: z.string().max(8) }).nullable()
})

/** Of keywords that every helper sends on: Anthropic's turn lengths and ranges into descriptions. */
export const Town = z.object({
  kind: z.enum(["town", "city"]),
  founded: z.iso.date(),
  isCapital: z.boolean(),
  mayor: z.object({ party: z.enum(["red", "green"]) }).nullable()
})

export const Weather = z.object({
  city: z.string().min(1).max(12),
  days: z.number().int().min(1).max(14),
  unit: z.enum(["c", "f"]),
  exact: z.boolean().nullable()
})

/** Fails unless every one of an object's partial readings has the fields of the one before it, in their order, and the last is `whole`. */
export const assertGrows = (partials: ReadonlyArray<unknown>, whole: unknown, what?: string): void => {
  const fields = partials.map((partial) => Object.keys(Object(partial)))
  fields.forEach((own, index) => assert.deepStrictEqual(own.slice(0, fields[index - 1]?.length), fields[index - 1] ?? own, what))
  assert.deepStrictEqual(partials.at(-1), whole, what)
}
