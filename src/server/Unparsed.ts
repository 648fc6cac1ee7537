import type { Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { RequestRefused } from "../domain/Errors.ts"
import { errorDialect } from "./ErrorResponse.ts"
import { requestId } from "./RequestRecord.ts"
import { routeOf } from "./Routes.ts"

/** What is told of a request that no route ever saw. */
export interface Refusal {
  readonly request: string
  readonly route: string
  readonly status: number
  readonly outcome: "refused"
  readonly error: RequestRefused["reason"]
}

export type OnRefused = (refusal: Refusal) => void

/** An error of Node's HTTP parser, with the bytes that it stumbled over. */
interface ClientError extends Error {
  readonly code?: string
  readonly rawPacket?: Buffer
}

const reasons: Readonly<Record<string, Pick<RequestRefused, "reason" | "message">>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { reason: "RequestTimeout", message: "The request did not arrive in time." },
  HPE_HEADER_OVERFLOW: { reason: "HeadersTooLarge", message: "The request's headers are too large." }
}

const malformed: Pick<RequestRefused, "reason" | "message"> = { reason: "Malformed", message: "The request could not be read as HTTP." }

const statusTexts: Readonly<Record<number, string>> = {
  400: "Bad Request",
  408: "Request Timeout",
  431: "Request Header Fields Too Large"
}

/** The target of the request line that a packet starts with. */
const targetOf = (packet: Buffer | undefined): string | undefined =>
  /^[A-Z]{3,10} (\/\S{0,2000}) HTTP\//.exec(packet?.toString("latin1", 0, 2100) ?? "")?.[1]

/** Answers what Node refuses by itself, before or while a request is read, in the words of the path's dialect where the path is known, and closes. */
export const refuseUnparsed = (server: Server, onRefused: OnRefused): void => {
  const latest = new WeakMap<Duplex, { readonly url: string; readonly response: ServerResponse }>()
  server.on("request", (request, response) => {
    latest.set(request.socket, { url: request.url ?? "", response })
    response.once("finish", () => latest.delete(request.socket))
  })
  server.on("clientError", (error: ClientError, socket: Duplex) => {
    const running = latest.get(socket)
    if (error.code === "ECONNRESET" || !socket.writable || running?.response.headersSent === true) return void socket.destroy()
    const url = running?.url ?? targetOf(error.rawPacket) ?? ""
    const id = requestId()
    const refused = new RequestRefused(reasons[error.code ?? ""] ?? malformed)
    const { body, headers, status } = errorDialect(url).encode(refused, id)
    const head = {
      ...headers,
      "x-request-id": id,
      connection: "close",
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body)
    }
    const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`).join("")
    socket.end(`HTTP/1.1 ${status} ${statusTexts[status] ?? "Bad Request"}\r\n${lines}\r\n${body}`)
    if (running === undefined) {
      onRefused({ request: id, route: routeOf(url)?.pattern ?? "unknown", status, outcome: "refused", error: refused.reason })
    }
  })
}
