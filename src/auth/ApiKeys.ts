import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** A key as one line of the key file has it. */
export interface ApiKeyLine {
  /** Keys of one name share a tenant. */
  readonly name: string | undefined
  readonly key: string
}

/** Lines of `key` or `name:key`; blank lines and `#` comments are skipped. A bad line is reported by its number, never by its text. */
export const parseKeyFile = (text: string): { readonly keys: ReadonlyArray<ApiKeyLine> } | { readonly badLine: number } => {
  const keys: Array<ApiKeyLine> = []
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    if (line === "" || line.startsWith("#")) continue
    const named = /^([\w.-]{1,64}):(\S+)$/.exec(line)
    if (named !== null) keys.push({ name: named[1], key: named[2] ?? "" })
    else if (/^[^\s:]+$/.test(line)) keys.push({ name: undefined, key: line })
    else return { badLine: index + 1 }
  }
  return { keys }
}

interface Entry {
  readonly tenant: string
  readonly digest: Buffer
}

/** A set of keys that holds no key: only salted digests, all compared for every look-up. */
export class ApiKeys {
  private readonly salt = randomBytes(32)
  private readonly entries: ReadonlyArray<Entry>

  constructor(lines: ReadonlyArray<ApiKeyLine>) {
    this.entries = lines.map(({ key, name }) => {
      const digest = this.digest(key)
      return { digest, tenant: name ?? `key-${digest.toString("hex", 0, 6)}` }
    })
  }

  get size(): number {
    return this.entries.length
  }

  /** The tenant of a key; the time taken does not depend on which key it is or how much of one is right. */
  tenant(key: string): string | undefined {
    const digest = this.digest(key)
    let tenant: string | undefined
    for (const entry of this.entries) {
      if (timingSafeEqual(entry.digest, digest)) tenant = entry.tenant
    }
    return tenant
  }

  private digest(key: string): Buffer {
    return createHmac("sha256", this.salt).update(key).digest()
  }
}
