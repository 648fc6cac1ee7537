/**
 * Start-up: from the spawn of `mashbox run` (the bundled model) to its ready line, and the memory of the server process then and after one
 * answer. The time of an empty Node program in the same run is the floor. Run with `npm run bench:start`.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"

const runs = 7
const budget = { readyMs: 600, rssMiB: 110 }
const cli = new URL("../bin/mashbox.js", import.meta.url).pathname

const median = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
const residentMiB = (pid: number) => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024

const emptyProgram = async () => {
  const started = performance.now()
  await once(spawn(process.execPath, ["-e", "0"]), "exit")
  return performance.now() - started
}

const startServer = async () => {
  const started = performance.now()
  const child = spawn(process.execPath, [cli, "run", "--port", "0"], { stdio: ["ignore", "ignore", "pipe"] })
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /http:\/\/\S+/.exec(line)?.[0]
    if (url === undefined) continue
    const readyMs = performance.now() - started
    const pid = child.pid ?? 0
    const atReady = residentMiB(pid)
    const body = JSON.stringify({ messages: [{ role: "user", content: "Tell me a story about a shy dragon." }] })
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body })
    if (!answer.ok) throw new Error(`the server answered ${answer.status}: ${await answer.text()}`)
    await answer.text()
    const afterAnswer = residentMiB(pid)
    child.kill("SIGTERM")
    await once(child, "exit")
    return { readyMs, atReady, afterAnswer }
  }
  throw new Error("the server ended before it was ready")
}

await startServer()
const floor: Array<number> = []
const starts: Array<Awaited<ReturnType<typeof startServer>>> = []
for (let run = 0; run < runs; run++) {
  floor.push(await emptyProgram())
  starts.push(await startServer())
}

const ready = median(starts.map((start) => start.readyMs))
const worst = Math.max(...starts.map((start) => start.readyMs))
const rss = Math.max(...starts.map((start) => start.afterAnswer))
console.log(`ready             median ${ready.toFixed(0)} ms, worst of ${runs} ${worst.toFixed(0)} ms (budget ${budget.readyMs} ms)`)
console.log(`empty node        median ${median(floor).toFixed(0)} ms; ready costs ${(ready / median(floor)).toFixed(1)} times that`)
console.log(
  `server RSS        ${median(starts.map((start) => start.atReady)).toFixed(0)} MiB when ready, ${
    rss.toFixed(0)
  } MiB after an answer (budget ${budget.rssMiB} MB)`
)
