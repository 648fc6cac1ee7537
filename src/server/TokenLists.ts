import { Effect, Result } from "effect"
import { isToken, type WireObject } from "../dialect/WireRequest.ts"
import { InvalidRequest } from "../domain/Errors.ts"
import { inTurns } from "../tokenizer/InTurns.ts"
import type { Paused } from "../tokenizer/Paused.ts"

/** Lists of token ids up to this length are left to the schemas, which take a microsecond for each. */
const longList = 16 * 1024

const idsPerStep = 64 * 1024

const isLong = (value: unknown): value is ReadonlyArray<unknown> =>
  Array.isArray(value) && value.length > longList && typeof value[0] === "number"

function* pack(list: ReadonlyArray<unknown>, field: string): Paused<Result.Result<Int32Array, InvalidRequest>> {
  const ids = new Int32Array(list.length)
  for (const [index, item] of list.entries()) {
    if (!isToken(item)) {
      const path = `${field}.${index}`
      return Result.fail(new InvalidRequest({ message: `${path}: Expected a token id`, field: path }))
    }
    ids[index] = item
    if (index % idsPerStep === 0) yield
  }
  return Result.succeed(ids)
}

function* packed(value: unknown, field: string): Paused<Result.Result<unknown, InvalidRequest>> {
  if (isLong(value)) return yield* pack(value, field)
  if (!Array.isArray(value) || !value.some(isLong)) return Result.succeed(value)
  const lists: Array<unknown> = []
  for (const [index, item] of value.entries()) {
    const list = isLong(item) ? yield* pack(item, `${field}.${index}`) : Result.succeed<unknown>(item)
    if (Result.isFailure(list)) return list
    lists.push(list.success)
  }
  return Result.succeed(lists)
}

/** The body with the long lists of token ids of a field checked and packed into `Int32Array`s, in turns of the event loop. */
export const packTokenLists = (wire: WireObject, field: string): Effect.Effect<WireObject, InvalidRequest> =>
  Effect.map(
    Effect.flatMap(inTurns(() => packed(wire.fields[field], field)), Effect.fromResult),
    (value) => value === wire.fields[field] ? wire : { ...wire, fields: { ...wire.fields, [field]: value } }
  )
