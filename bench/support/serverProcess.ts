import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import type { LongestTurn } from "./turnMeter.ts"

/** What the server process of `scriptedServer.ts` says about itself. */
export interface ServerFigures {
  /** CPU time of the process so far, user and system, in microseconds. */
  readonly cpu: number
  /** Requests that reached the engine. */
  readonly engineRequests: number
  /** Of the event loop's turns since "watch"; only in the answer to "unwatch". */
  readonly turns?: LongestTurn
}

export type Ask = "figures" | "watch" | "unwatch"

export class ServerProcess {
  readonly url: string
  private readonly child: ChildProcess

  private constructor(child: ChildProcess, url: string) {
    this.child = child
    this.url = url
  }

  static async start(): Promise<ServerProcess> {
    const child = fork(new URL("scriptedServer.ts", import.meta.url), { stdio: ["ignore", "ignore", "ignore", "ipc"] })
    child.once("exit", (code, signal) => {
      if (code !== 0) throw new Error(`the server process ended with ${signal ?? code}`)
    })
    const [{ url }] = await once(child, "message") as [{ readonly url: string }]
    return new ServerProcess(child, url)
  }

  async ask(what: Ask): Promise<ServerFigures> {
    this.child.send(what)
    const [figures] = await once(this.child, "message") as [ServerFigures]
    return figures
  }

  close(): void {
    this.child.disconnect()
  }
}
