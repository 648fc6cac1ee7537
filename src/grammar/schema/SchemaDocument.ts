import type { Budget } from "../Budget.ts"
import { GrammarError, type Reason } from "../GrammarError.ts"

/** A schema where it stands in its document. */
export interface Place {
  readonly id: number
  readonly schema: unknown
  readonly parent: Place | undefined
  readonly key: string
  /** The URI that references in it are relative to. */
  readonly base: string
}

const defaultBase = "https://json-schema.invalid/"

/** Path characters in a message; the middle of a longer one is left out. */
const mostPathCharacters = 400

/** The dotted path of a keyword at a place. */
export const pathOf = (place: Place, ...keys: ReadonlyArray<string | number>): string => {
  const parts: Array<string> = keys.map(String).toReversed()
  for (let at: Place | undefined = place; at?.parent !== undefined; at = at.parent) parts.push(at.key)
  const path = parts.toReversed().join(".")
  return path.length <= mostPathCharacters ? path : `${path.slice(0, mostPathCharacters / 2)}…${path.slice(-mostPathCharacters / 2)}`
}

export const fail = (reason: Reason, place: Place, keys: ReadonlyArray<string | number>, message: string): never => {
  const path = pathOf(place, ...keys)
  throw new GrammarError({ reason, path, message: path === "" ? message : `${path}: ${message}` })
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Keys below which there are values, not schemas. */
const valueKeys: ReadonlySet<string> = new Set(["enum", "const", "default", "example", "examples"])

/** One JSON Schema document: its schemas by place, and what its references point to. */
export class SchemaDocument {
  readonly root: Place
  readonly #budget: Budget
  readonly #places = new Map<object, Place>()
  readonly #resources = new Map<string, Place>()
  #anchors: Map<string, Place> | undefined
  #count = 0

  constructor(schema: unknown, budget: Budget) {
    this.#budget = budget
    this.root = this.#place(schema, undefined, "", defaultBase)
    if (!this.#resources.has(defaultBase)) this.#resources.set(defaultBase, this.root)
  }

  /** What stands below a place; the same place for the same object. */
  child(place: Place, schema: unknown, ...keys: ReadonlyArray<string | number>): Place {
    if (typeof schema === "object" && schema !== null) {
      const known = this.#places.get(schema)
      if (known !== undefined) return known
    }
    const [last = ""] = keys.slice(-1)
    const parent = keys.slice(0, -1).reduce<Place>((above, key) => ({ ...above, parent: above, key: String(key) }), place)
    return this.#place(schema, parent, String(last), place.base)
  }

  #place(schema: unknown, parent: Place | undefined, key: string, base: string): Place {
    this.#budget.step()
    const own = isObject(schema) && typeof schema.$id === "string" && !schema.$id.startsWith("#") ? resolved(schema.$id, base) : undefined
    const place = { id: this.#count++, schema, parent, key, base: own === undefined ? base : withoutFragment(own) }
    if (typeof schema === "object" && schema !== null) this.#places.set(schema, place)
    if (own !== undefined && !this.#resources.has(place.base)) this.#resources.set(place.base, place)
    return place
  }

  /** @throws GrammarError where the reference points out of the document or to nothing. */
  resolve(place: Place, keyword: string, reference: string): Place {
    const target = resolved(reference, place.base)
    if (target === undefined) return fail("Invalid", place, [keyword], "is no URI reference")
    const fragment = fragmentOf(target)
    if (fragment === undefined) return fail("Invalid", place, [keyword], "its fragment is malformed")
    const uri = withoutFragment(target)
    const resource = this.#resources.get(uri) ?? (this.#indexed(), this.#resources.get(uri))
    if (resource === undefined) {
      return fail("Unsupported", place, [keyword], "points out of this schema, and nothing is loaded from elsewhere")
    }
    if (fragment !== "" && !fragment.startsWith("/")) {
      const anchored = this.#indexed().get(`${uri}#${fragment}`)
      return anchored ?? fail("Invalid", place, [keyword], "points to an anchor that does not exist")
    }
    let found = resource
    for (const part of fragment.split("/").slice(1)) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~")
      const within = found.schema
      if (typeof within !== "object" || within === null || !Object.hasOwn(within, key)) {
        return fail("Invalid", place, [keyword], "points to nothing")
      }
      found = this.child(found, Reflect.get(within, key), key)
    }
    return found
  }

  /** The anchors of the whole document; finds its resources too. */
  #indexed(): Map<string, Place> {
    if (this.#anchors !== undefined) return this.#anchors
    const anchors = new Map<string, Place>()
    this.#anchors = anchors
    const pending = [this.root]
    for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
      const { schema } = place
      if (typeof schema !== "object" || schema === null) continue
      if (isObject(schema)) {
        for (const anchor of [schema.$anchor, schema.$dynamicAnchor]) {
          if (typeof anchor === "string") anchors.set(`${place.base}#${anchor}`, place)
        }
        if (typeof schema.$id === "string" && schema.$id.startsWith("#")) anchors.set(`${place.base}${schema.$id}`, place)
      }
      for (const [key, value] of Object.entries(schema)) {
        if (typeof value === "object" && value !== null && !valueKeys.has(key)) pending.push(this.child(place, value, key))
      }
    }
    return anchors
  }
}

const resolved = (reference: string, base: string): string | undefined => URL.parse(reference, base)?.href

const withoutFragment = (uri: string): string => uri.replace(/#.*$/s, "")

const fragmentOf = (uri: string): string | undefined => {
  try {
    return decodeURIComponent(/#(.*)$/s.exec(uri)?.[1] ?? "")
  } catch {
    return undefined
  }
}
