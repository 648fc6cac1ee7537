/**
 * The server's own cost: CPU of the server process per streamed token at 64 streams, one token per stream and engine step, against the
 * budget of 10 µs (the scripted engine that makes the tokens included), and short requests per second. Run with `npm run bench:server`.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { Agent, request } from "node:http"

const streams = 64
const tokensPerStream = 1_000
const shortRequests = 2_000
const budgetMicroseconds = 10

const child = fork(new URL("support/scriptedServer.ts", import.meta.url), { stdio: ["ignore", "ignore", "ignore", "ipc"] })
child.once("exit", (code) => {
  if (code !== null && code !== 0) throw new Error(`the server process ended with ${code}`)
})
const [{ url }] = await once(child, "message") as [{ readonly url: string }]
const agent = new Agent({ keepAlive: true, maxSockets: streams })

const cpu = async (): Promise<number> => {
  child.send("cpu")
  const [{ cpu }] = await once(child, "message") as [{ readonly cpu: number }]
  return cpu
}

interface Answer {
  readonly bytes: number
  readonly deltas: number
}

/** Reads an answer without parsing it; deltas are counted by their end. */
const chat = (body: object): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(
      `${url}/v1/chat/completions`,
      { method: "POST", agent, headers: { "content-type": "application/json" } },
      (response) => {
        if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`))
        let bytes = 0
        let deltas = 0
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length
          for (let at = chunk.indexOf("}\n\n"); at >= 0; at = chunk.indexOf("}\n\n", at + 3)) deltas++
        })
        response.on("end", () => resolve({ bytes, deltas }))
        response.on("error", reject)
      }
    )
    sent.on("error", reject)
    sent.end(JSON.stringify(body))
  })

const messages = [{ role: "user", content: "Tell me a story about a shy dragon." }]

const streamAll = async (tokens: number) => {
  const before = await cpu()
  const started = performance.now()
  const answers = await Promise.all(Array.from({ length: streams }, () => chat({ messages, stream: true, max_tokens: tokens })))
  const seconds = (performance.now() - started) / 1000
  return { microseconds: await cpu() - before, seconds, answers }
}

const shortAll = async (count: number) => {
  const before = await cpu()
  const started = performance.now()
  let left = count
  const worker = async () => {
    while (left-- > 0) await chat({ messages, max_tokens: 1 })
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  return { microseconds: await cpu() - before, seconds: (performance.now() - started) / 1000 }
}

await streamAll(tokensPerStream)
await shortAll(shortRequests)

const rounds = [await streamAll(tokensPerStream), await streamAll(tokensPerStream), await streamAll(tokensPerStream)]
const perToken = rounds.map(({ microseconds }) => microseconds / (streams * tokensPerStream)).toSorted((a, b) => a - b)
const [best, median, worst] = perToken
const round = rounds[0]!
const deltas = round.answers.reduce((sum, answer) => sum + answer.deltas, 0)
const bytes = round.answers.reduce((sum, answer) => sum + answer.bytes, 0)
const tokens = streams * tokensPerStream
const short = await shortAll(shortRequests)

console.log(
  `streamed token   ${median?.toFixed(2)} µs of server CPU (best ${best?.toFixed(2)}, worst ${
    worst?.toFixed(2)
  }; budget ${budgetMicroseconds} µs)`
)
console.log(
  `                 ${streams} streams, ${(tokens / round.seconds).toFixed(0)} tokens/s, ${
    (tokens / deltas).toFixed(2)
  } tokens per event, ${(bytes / tokens).toFixed(0)} bytes per token`
)
console.log(
  `short requests   ${(shortRequests / short.seconds).toFixed(0)} per second, ${
    (short.microseconds / shortRequests).toFixed(0)
  } µs of server CPU each (1 token, 16 connections)`
)

agent.destroy()
child.disconnect()
if (!(median !== undefined && median <= budgetMicroseconds)) process.exitCode = 1
