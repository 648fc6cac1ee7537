import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../../..", import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const collect = (stream: NodeJS.ReadableStream | null) => {
  const chunks: Array<string> = []
  stream?.setEncoding("utf8").on("data", (chunk: string) => chunks.push(chunk))
  return () => chunks.join("")
}

const start = (args: ReadonlyArray<string>, environment: Readonly<Record<string, string>>): ChildProcess =>
  spawn(process.execPath, ["bin/mashbox.js", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, XDG_CONFIG_HOME: "/nonexistent", ...environment }
  })

/** Runs the CLI to its end. */
export const mashbox = async (args: ReadonlyArray<string>, environment: Readonly<Record<string, string>> = {}): Promise<Ended> => {
  const child = start(args, environment)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const [code] = await once(child, "close")
  return { code, stdout: stdout(), stderr: stderr() }
}

export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly readyLine: string
  readonly child: ChildProcess
  readonly stderr: () => string
}

/** A server on a free port, ready to answer; it is stopped with the end of the scope that uses it. */
export const serve = async (args: ReadonlyArray<string> = [], environment: Readonly<Record<string, string>> = {}): Promise<Serving> => {
  const child = start(["run", ...args, "--port", "0"], environment)
  const stderr = collect(child.stderr)
  const readyLine = await new Promise<string>((resolve, reject) => {
    child.stderr?.on("data", () => {
      const line = /^http:.*$/m.exec(stderr())?.[0]
      if (line !== undefined) resolve(line)
    })
    child.once("close", (code) => reject(new Error(`ended with ${code} before it was ready: ${stderr()}`)))
  })
  return {
    url: readyLine.split(" ", 1)[0] ?? "",
    readyLine,
    child,
    stderr,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill("SIGTERM")
      await once(child, "close")
    }
  }
}

export const chat = (url: string, body: object, init: RequestInit = {}): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...init
  })
