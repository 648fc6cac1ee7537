import { Result } from "effect"
import { Base64Url } from "effect/encoding"

/** What clients carry for this server without reading it, and send back with the conversation. */
export const plainCarrier = "mashbox-local"

/** A carrier that holds reasoning whose text is not shown. */
export const packReasoning = (reasoning: string): string => `${plainCarrier}.${Base64Url.encode(reasoning)}`

/** The reasoning in a carrier; undefined where there is none, as in those of other servers. */
export const unpackReasoning = (carrier: string): string | undefined =>
  carrier.startsWith(`${plainCarrier}.`)
    ? Result.getOrElse(Base64Url.decodeString(carrier.slice(plainCarrier.length + 1)), () => undefined)
    : undefined
