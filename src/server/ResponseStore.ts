import { Context, Effect, Layer, type Scope } from "effect"
import type { Fields } from "../dialect/OpenAiResponsesTools.ts"
import { isRecord } from "../dialect/WireRequest.ts"
import { Settings, SettingsError } from "../Settings.ts"
import { ResponseDatabase } from "./ResponseDatabase.ts"

/** A response as it is kept. */
export interface StoredResponse {
  readonly id: string
  /** JSON of the response object. */
  readonly body: string
  /** Every item that came before its output, those of the responses that it follows included. */
  readonly input: ReadonlyArray<Fields>
  /** Ids of the items in its output and of those that its request brought. */
  readonly itemIds: ReadonlyArray<string>
}

export interface StoreLimits {
  /** Responses that one tenant may keep. */
  readonly responses: number
  /** Bytes of text that one tenant may keep. */
  readonly bytes: number
}

export const storeLimits: StoreLimits = { responses: 1024, bytes: 64 * 1024 * 1024 }

/** Bytes that a value counts for: two a character, as a string takes at most, and eight for everything else that it has. */
const bytesOf = (value: unknown): number => {
  const left: Array<unknown> = [value]
  let bytes = 0
  while (left.length > 0) {
    const next = left.pop()
    bytes += typeof next === "string" ? 2 * next.length : 8
    if (Array.isArray(next)) { for (const item of next) left.push(item) }
    else if (isRecord(next)) {
      for (const name in next) {
        bytes += 2 * name.length
        left.push(next[name])
      }
    }
  }
  return bytes
}

/** Bytes that a response counts for. */
export const sizeOf = ({ body, id, input, itemIds }: StoredResponse): number => bytesOf([body, id, input, itemIds])

/** What one tenant keeps; the least recently used goes first. */
class TenantResponses {
  private readonly limits: StoreLimits
  private readonly onEvict: (id: string) => void
  /** In the order of use. */
  private readonly responses = new Map<string, { readonly response: StoredResponse; readonly size: number }>()
  private readonly owners = new Map<string, string>()
  private bytes = 0

  constructor(limits: StoreLimits, onEvict: (id: string) => void) {
    this.limits = limits
    this.onEvict = onEvict
  }

  /** False where the response alone is too large. */
  put(response: StoredResponse): boolean {
    const size = sizeOf(response)
    if (size > this.limits.bytes) return false
    this.delete(response.id)
    this.responses.set(response.id, { response, size })
    for (const item of response.itemIds) this.owners.set(item, response.id)
    this.bytes += size
    for (const id of this.responses.keys()) {
      if (this.responses.size <= this.limits.responses && this.bytes <= this.limits.bytes) break
      this.delete(id)
      this.onEvict(id)
    }
    return true
  }

  get(id: string): StoredResponse | undefined {
    const kept = this.responses.get(id)
    if (kept === undefined) return undefined
    this.responses.delete(id)
    this.responses.set(id, kept)
    return kept.response
  }

  owner(itemId: string): StoredResponse | undefined {
    const id = this.owners.get(itemId)
    return id === undefined ? undefined : this.get(id)
  }

  delete(id: string): boolean {
    const kept = this.responses.get(id)
    if (kept === undefined) return false
    this.responses.delete(id)
    for (const item of kept.response.itemIds) if (this.owners.get(item) === id) this.owners.delete(item)
    this.bytes -= kept.size
    return true
  }
}

/**
 * Responses that clients come back to. Each tenant has its own, bounded in number and size. With `--responses-db` they are in a SQLite file
 * as well, and so outlive the server.
 */
export class ResponseStore extends Context.Service<ResponseStore, {
  readonly put: (tenant: string, response: StoredResponse) => void
  /** Counts as a use. */
  readonly get: (tenant: string, id: string) => StoredResponse | undefined
  /** The newest response that an item belongs to. */
  readonly owner: (tenant: string, itemId: string) => StoredResponse | undefined
  readonly delete: (tenant: string, id: string) => boolean
}>()("mashbox/server/ResponseStore") {
  static readonly make = (options: {
    readonly limits: StoreLimits
    /** Path of the SQLite file; created where it is not there yet. */
    readonly path: string | undefined
  }): Effect.Effect<ResponseStore["Service"], SettingsError, Scope.Scope> =>
    Effect.gen(function*() {
      const { limits, path } = options
      const tenants = new Map<string, TenantResponses>()
      const database = path === undefined ? undefined : yield* ResponseDatabase.open(path)
      const of = (tenant: string): TenantResponses => {
        const known = tenants.get(tenant)
        if (known !== undefined) return known
        const made = new TenantResponses(limits, (id) => database?.delete(tenant, id))
        tenants.set(tenant, made)
        return made
      }
      if (database !== undefined) {
        for (const { response, tenant } of yield* database.all) if (!of(tenant).put(response)) database.delete(tenant, response.id)
      }
      return {
        put: (tenant, response) => {
          if (of(tenant).put(response)) database?.put(tenant, response)
        },
        get: (tenant, id) => tenants.get(tenant)?.get(id),
        owner: (tenant, itemId) => tenants.get(tenant)?.owner(itemId),
        delete: (tenant, id) => {
          const found = tenants.get(tenant)?.delete(id) ?? false
          if (found) database?.delete(tenant, id)
          return found
        }
      }
    })

  static readonly layer: Layer.Layer<ResponseStore, SettingsError, Settings> = Layer.effect(
    ResponseStore,
    Effect.gen(function*() {
      return yield* ResponseStore.make({ limits: storeLimits, path: (yield* Settings).responsesDb })
    })
  )
}

/** Responses that are not stored, for as long as the connection lasts that they came over; of each tenant within the same bounds. */
export class ConnectionResponses extends Context.Service<ConnectionResponses, ResponseStore["Service"]>()(
  "mashbox/server/ConnectionResponses"
) {
  static readonly layer: Layer.Layer<ConnectionResponses> = Layer.effect(
    ConnectionResponses,
    Effect.orDie(ResponseStore.make({ limits: storeLimits, path: undefined }))
  )
}
