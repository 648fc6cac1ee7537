import { Result } from "effect"
import { Base64Url } from "effect/encoding"

/** A carrier without content: what clients keep for this server without reading it, and send back with the conversation. */
export const plain = "mashbox-local"

/** A carrier that holds reasoning. */
export const seal = (reasoning: string): string => `${plain}.${Base64Url.encode(reasoning)}`

/** The reasoning in a carrier; undefined where there is none, as in those of other servers. */
export const open = (carrier: string): string | undefined =>
  carrier.startsWith(`${plain}.`)
    ? Result.getOrElse(Base64Url.decodeString(carrier.slice(plain.length + 1)), () => undefined)
    : undefined
