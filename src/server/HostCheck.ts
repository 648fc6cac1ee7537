import { RequestRefused } from "../domain/Errors.ts"
import { isLoopback } from "../domain/HostName.ts"

const authority = /^([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(\d{1,5}))?$/
const ipv4 = /^\d{1,3}(\.\d{1,3}){3}$/

/** Addresses that mean "every interface". */
const isWildcard = (host: string) => host === "0.0.0.0" || host === "::" || host === "[::]"

const isNumericAddress = (name: string) => ipv4.test(name) || name.startsWith("[")

export interface OriginHeaders {
  readonly host: string | undefined
  readonly origin: string | undefined
}

/**
 * Refuses requests that a web page makes a browser send: those for a host name that the server does not answer to (DNS rebinding), and
 * those from a page of another origin, except the ones in `corsOrigins`. A server on every interface answers to any numeric address, since a name
 * is what rebinding needs.
 */
export const hostCheck = (configuredHost: string, corsOrigins: ReadonlyArray<string> = []) => {
  const own = configuredHost.toLowerCase()
  const answersTo = (name: string) => isLoopback(name) || name === own || name === `[${own}]` || (isWildcard(own) && isNumericAddress(name))
  return ({ host, origin }: OriginHeaders): RequestRefused | undefined => {
    const match = authority.exec(host ?? "")
    if (match === null || Number(match[2] ?? 0) > 65_535 || !answersTo((match[1] ?? "").toLowerCase())) {
      return new RequestRefused({ reason: "ForeignHost", message: "This server does not answer to the host name of the request." })
    }
    if (origin !== undefined && origin.toLowerCase() !== `http://${(host ?? "").toLowerCase()}` && !corsOrigins.includes(origin)) {
      return new RequestRefused({ reason: "ForeignOrigin", message: "Requests from web pages of another origin are refused." })
    }
    return undefined
  }
}
