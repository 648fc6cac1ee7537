import { WebSocket } from "@effect/platform-node/NodeWS"
import { once } from "node:events"
import { Agent, request } from "node:http"

export const agent = new Agent({ keepAlive: true, maxSockets: 256 })

export interface Answer {
  readonly status: number
  readonly bytes: number
  /** Server-sent events that end an object, counted by their end. */
  readonly events: number
  readonly firstByteMs: number
}

export interface Sent {
  readonly answer: Promise<Answer>
  /** The longest wait between two pieces since the last call. */
  readonly takeGapMs: () => number
  /** Leaves before the answer ends; `answer` then resolves with what came. */
  readonly leave: () => void
}

/** Sends a JSON body and reads the answer without parsing it. */
export const send = (url: string, body: object | Buffer): Sent => {
  const bytesOfBody = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
  const started = performance.now()
  const { promise: answer, reject, resolve } = Promise.withResolvers<Answer>()
  let left = false
  let bytes = 0
  let events = 0
  let status = 0
  let firstByteMs = Number.NaN
  let gapMs = 0
  let lastAt = 0
  const done = () => resolve({ status, bytes, events, firstByteMs })
  const failed = (error: Error) => left ? done() : reject(error)
  const sent = request(
    url,
    { method: "POST", agent, headers: { "content-type": "application/json", "content-length": bytesOfBody.length } },
    (response) => {
      status = response.statusCode ?? 0
      firstByteMs = performance.now() - started
      lastAt = performance.now()
      response.on("data", (chunk: Buffer) => {
        const now = performance.now()
        gapMs = Math.max(gapMs, now - lastAt)
        lastAt = now
        bytes += chunk.length
        for (let at = chunk.indexOf("}\n\n"); at >= 0; at = chunk.indexOf("}\n\n", at + 3)) events++
      })
      response.on("end", done)
      response.on("error", failed)
    }
  )
  sent.on("error", failed)
  sent.end(bytesOfBody)
  return {
    answer,
    takeGapMs: () => {
      const taken = gapMs
      gapMs = 0
      return taken
    },
    leave: () => {
      left = true
      sent.destroy()
    }
  }
}

/** Sends and reads a whole answer, which must have this status. */
export const answered = async (url: string, body: object | Buffer, status = 200): Promise<Answer> => {
  const answer = await send(url, body).answer
  if (answer.status !== status) throw new Error(`${url} answered ${answer.status}, not ${status}`)
  return answer
}

const idleSockets: Array<WebSocket> = []

const socketTo = async (url: string): Promise<WebSocket> => {
  const socket = idleSockets.pop()
  if (socket !== undefined) return socket
  const opened = new WebSocket(url.replace("http", "ws"))
  await once(opened, "open")
  return opened
}

/** Has one response over a WebSocket, which is kept for others, without parsing its events. */
export const answeredBySocket = async (url: string, body: object): Promise<Pick<Answer, "bytes" | "events">> => {
  const socket = await socketTo(url)
  const { promise, reject, resolve } = Promise.withResolvers<Pick<Answer, "bytes" | "events">>()
  let bytes = 0
  let events = 0
  const onMessage = (data: Buffer) => {
    events++
    bytes += data.length
    const head = data.toString("latin1", 0, 32)
    if (head.startsWith("{\"type\":\"error\"")) reject(new Error(String(data)))
    if (!head.startsWith("{\"type\":\"response.completed\"") && !head.startsWith("{\"type\":\"response.incomplete\"")) return
    socket.off("message", onMessage)
    idleSockets.push(socket)
    resolve({ bytes, events })
  }
  socket.on("message", onMessage)
  socket.send(JSON.stringify({ type: "response.create", ...body }))
  return promise
}

/** Ends the connections that are kept. */
export const closeSockets = (): void => {
  for (const socket of idleSockets.splice(0)) socket.terminate()
}

/** The value below which this share of the values lies. */
export const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
