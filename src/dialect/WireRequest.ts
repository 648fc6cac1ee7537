import { Result, type Schema, Schema as S, SchemaIssue } from "effect"
import { InvalidRequest } from "../domain/Errors.ts"

/** Nesting that no client needs and that recursive code further on would not survive. */
export const maxDepth = 64

const formatter = SchemaIssue.makeFormatterStandardSchemaV1()

export const isToken = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0x7fff_ffff

/** A JSON object. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A request body that parsed as a JSON object. Long lists of token ids may be checked already and packed as `Int32Array`s. */
export interface WireObject {
  readonly fields: Readonly<Record<string, unknown>>
}

const depthExceeds = (root: unknown, limit: number): boolean => {
  let level: Array<object> = typeof root === "object" && root !== null ? [root] : []
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > limit) return true
    const next: Array<object> = []
    for (const node of level) {
      for (const value of Array.isArray(node) ? node : Object.values(node)) {
        if (typeof value === "object" && value !== null) next.push(value)
      }
    }
    level = next
  }
  return false
}

/** Text of a body → its object without the top-level fields that are null, which count as absent. */
export const parse = (text: string): Result.Result<WireObject, InvalidRequest> => {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return Result.fail(new InvalidRequest({ message: "The request body is not valid JSON.", field: null }))
  }
  if (depthExceeds(body, maxDepth)) {
    return Result.fail(new InvalidRequest({ message: `The request body nests deeper than ${maxDepth} levels.`, field: null }))
  }
  return objectOf(body)
}

/** The object that a body is, of at most `maxDepth` levels, without its fields that are null. */
export const objectOf = (body: unknown): Result.Result<WireObject, InvalidRequest> =>
  isRecord(body)
    ? Result.succeed({ fields: Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)) })
    : Result.fail(new InvalidRequest({ message: "The request body must be a JSON object.", field: null }))

/** A decoder of one request schema whose errors name the path of the field, for example "messages.0.role". */
export const decoder = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = S.decodeUnknownResult(schema)
  return (body: WireObject): Result.Result<A, InvalidRequest> =>
    Result.mapError(decode(body.fields), (error) => {
      const issue = formatter(error.issue).issues[0]
      const field = (issue?.path ?? []).map(String).join(".").slice(0, 200)
      const message = (issue?.message ?? "Invalid value").slice(0, 400)
      return new InvalidRequest({ message: field === "" ? message : `${field}: ${message}`, field: field === "" ? null : field })
    })
}

/** Names of the body's fields that are not in `acted`, safe to put in a header. */
export const ignoredFields = (body: WireObject, acted: ReadonlySet<string>): ReadonlyArray<string> =>
  Object.keys(body.fields).filter((name) => !acted.has(name) && /^[\w.-]{1,64}$/.test(name)).slice(0, 32)

/** Names of the fields of a field that change nothing, with their paths. */
export const ignoredWithin = (wire: WireObject, field: string, acted: ReadonlySet<string>): ReadonlyArray<string> => {
  const value = wire.fields[field]
  return typeof value === "object" && value !== null
    ? ignoredFields({ fields: { ...value } }, acted).map((name) => `${field}.${name}`)
    : []
}
