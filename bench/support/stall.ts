import { setTimeout as wait } from "node:timers/promises"
import { answered, send } from "./client.ts"
import { dialects } from "./dialects.ts"
import type { ServerProcess } from "./serverProcess.ts"
import type { LongestTurn } from "./turnMeter.ts"

const streams = 8

export interface Stall {
  /** Of the server's event loop. */
  readonly turns: LongestTurn
  /** The longest wait for a piece of any other stream, seen by its client. */
  readonly gapMs: number
}

/** What other streams notice while `work` runs. */
export const stallDuring = async (server: ServerProcess, work: () => Promise<unknown>): Promise<Stall> => {
  const chat = dialects[0]
  if (chat === undefined) throw new Error("no dialect")
  const others = Array.from({ length: streams }, () => send(server.url + chat.path, chat.body(1 << 23, true)))
  await wait(300)
  await server.ask("watch")
  for (const other of others) other.takeGapMs()
  await work()
  const gapMs = Math.max(...others.map((other) => other.takeGapMs()))
  const { turns } = await server.ask("unwatch")
  for (const other of others) other.leave()
  await Promise.all(others.map((other) => other.answer))
  if (turns === undefined) throw new Error("the server did not watch")
  return { turns, gapMs }
}

/** What other streams notice of a large body, from its first byte to its answer's end. */
export const stallOf = (server: ServerProcess, path: string, body: object, status = 200): Promise<Stall> => {
  const bytes = Buffer.from(JSON.stringify(body))
  return stallDuring(server, () => answered(server.url + path, bytes, status))
}
