/**
 * The server's own cost, over the scripted engine that makes the tokens: CPU of the server process per streamed token at 64 streams in every
 * dialect, short requests per second, the first byte of a refusal, parallel `count_tokens`, and what other streams notice of a body of
 * 10 MB, refused or accepted, on every route. Run with `npm run bench:server`, or `npm run bench:server -- large` for the last part alone.
 */
import { setTimeout as wait } from "node:timers/promises"
import { agent, answered, answeredBySocket, closeSockets, quantile, send } from "./support/client.ts"
import { type Dialect, dialects, largePrompts } from "./support/dialects.ts"
import { ServerProcess } from "./support/serverProcess.ts"
import { type Stall, stallDuring, stallOf } from "./support/stall.ts"

const streams = 64
const tokensPerStream = 1_000
/** Rounds before the figures count: a server that has just started still compiles its hot paths. */
const warmUps = 8
const measured = 9
const shortRequests = 2_000
const refusals = 300
const counts = 24
const bodyBytes = 10_000_000
const budget = { tokenMicroseconds: 10, refusalMs: 5, stallMs: 10 }

const [chat, , responses, messages] = dialects
if (chat === undefined || responses === undefined || messages === undefined) throw new Error("no dialects")

const server = await ServerProcess.start()
const missed: Array<string> = []
const row = (name: string, figures: string) => console.log(`${name.padEnd(26)} ${figures}`)
const within = (name: string, value: number, limit: number) => {
  if (!(value <= limit)) missed.push(name)
}

interface Streamed {
  readonly name: string
  readonly stream: () => Promise<{ readonly bytes: number; readonly events: number }>
}

const streamed: ReadonlyArray<Streamed> = [
  ...dialects.map(({ body, name, path }) => ({ name, stream: () => answered(server.url + path, body(tokensPerStream, true)) })),
  {
    name: "Responses, WebSocket",
    stream: () => answeredBySocket(server.url + responses.path, { ...responses.body(tokensPerStream, true), store: false })
  }
]

const streamAll = async ({ stream }: Streamed) => {
  const before = await server.ask("figures")
  const started = performance.now()
  const answers = await Promise.all(Array.from({ length: streams }, stream))
  const seconds = (performance.now() - started) / 1000
  const tokens = streams * tokensPerStream
  return {
    microseconds: ((await server.ask("figures")).cpu - before.cpu) / tokens,
    tokensPerSecond: tokens / seconds,
    tokensPerEvent: tokens / answers.reduce((sum, { events }) => sum + events, 0),
    bytesPerToken: answers.reduce((sum, { bytes }) => sum + bytes, 0) / tokens
  }
}

const shortAll = async ({ body, path }: Dialect) => {
  const before = await server.ask("figures")
  const started = performance.now()
  let left = shortRequests
  const worker = async () => {
    while (left-- > 0) await answered(server.url + path, body(1, false))
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  const seconds = (performance.now() - started) / 1000
  return { perSecond: shortRequests / seconds, microseconds: ((await server.ask("figures")).cpu - before.cpu) / shortRequests }
}

/** Waits for the first byte of requests that are refused for a field, one after the other, the dialects in turns. */
const refuseAll = async (dialects: ReadonlyArray<Dialect>) => {
  const waits = dialects.map((): Array<number> => [])
  for (let request = 0; request < refusals; request++) {
    for (const [index, { body, path }] of dialects.entries()) {
      const refused = { ...body(1, false), temperature: "warm" }
      waits[index]?.push((await answered(server.url + path, refused, 400)).firstByteMs)
    }
  }
  return waits.map((own) => ({ p50: quantile(own, 0.5), p99: quantile(own, 0.99) }))
}

/** Runs `work` while 8 streams go on. */
const besideStreams = async <A>(work: () => Promise<A>): Promise<A> => {
  const others = Array.from({ length: 8 }, () => send(server.url + chat.path, chat.body(1 << 23, true)))
  await wait(300)
  const result = await work()
  for (const other of others) other.leave()
  await Promise.all(others.map((other) => other.answer))
  return result
}

const small = async () => {
  const figures = streamed.map((): Array<Awaited<ReturnType<typeof streamAll>>> => [])
  // The dialects take turns, so that a slow minute of the machine is not one dialect's.
  for (let round = 0; round < warmUps + measured; round++) {
    for (const [index, dialect] of streamed.entries()) {
      const figure = await streamAll(dialect)
      if (round >= warmUps) figures[index]?.push(figure)
    }
  }
  for (const [index, dialect] of streamed.entries()) {
    const rounds = figures[index] ?? []
    const costs = rounds.map(({ microseconds }) => microseconds)
    const median = quantile(costs, 0.5)
    row(
      `token, ${dialect.name}`,
      `${median.toFixed(2)} µs of server CPU (best ${Math.min(...costs).toFixed(2)}, worst ${
        Math.max(...costs).toFixed(2)
      }; budget ${budget.tokenMicroseconds} µs); ${streams} streams, ${rounds[0]?.tokensPerSecond.toFixed(0)} tokens/s, ${
        rounds[0]?.tokensPerEvent.toFixed(2)
      } tokens per event, ${rounds[0]?.bytesPerToken.toFixed(0)} bytes per token`
    )
    within(`token, ${dialect.name}`, median, budget.tokenMicroseconds)
  }

  closeSockets()

  await shortAll(chat)
  for (const dialect of [chat, messages]) {
    const { microseconds, perSecond } = await shortAll(dialect)
    row(
      `short requests, ${dialect.name}`,
      `${perSecond.toFixed(0)} per second, ${microseconds.toFixed(0)} µs of server CPU each (1 token, 16 connections)`
    )
  }

  await refuseAll(dialects)
  for (const [index, { p50, p99 }] of (await refuseAll(dialects)).entries()) {
    const name = `refusal, ${dialects[index]?.name}`
    row(name, `first byte p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms (budget ${budget.refusalMs} ms)`)
    within(name, p99, budget.refusalMs)
  }
  for (const { p50, p99 } of await besideStreams(() => refuseAll([chat]))) {
    row("  beside 8 streams", `first byte p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`)
  }

  const counted = await besideStreams(async () => {
    const before = (await server.ask("figures")).engineRequests
    const started = performance.now()
    const body = { ...messages.large(40_000), max_tokens: undefined }
    const answers = await Promise.all(Array.from({ length: counts }, () => answered(`${server.url}/v1/messages/count_tokens`, body)))
    const ms = performance.now() - started
    return {
      ms,
      slowest: Math.max(...answers.map(({ firstByteMs }) => firstByteMs)),
      engine: (await server.ask("figures")).engineRequests - before
    }
  })
  row(
    `${counts} count_tokens at once`,
    `all after ${counted.ms.toFixed(0)} ms beside 8 streams, slowest ${
      counted.slowest.toFixed(0)
    } ms; ${counted.engine} reached the engine (must be 0)`
  )
  within("count_tokens", counted.engine, 0)
}

const stallRow = (name: string, { gapMs, turns }: Stall) =>
  row(
    name,
    `longest wait of 8 other streams ${gapMs.toFixed(1)} ms; longest turn of the server ${turns.wallMs.toFixed(1)} ms, ${
      turns.cpuMs.toFixed(1)
    } ms of it CPU`
  )
if (process.argv[2] !== "large") await small()
stallRow("no body", await stallDuring(server, () => wait(2_000)))
for (const dialect of dialects) {
  const name = `10 MB, refused, ${dialect.name}`
  const stall = await stallOf(server, dialect.path, { ...dialect.large(bodyBytes), temperature: "warm" }, 400)
  stallRow(name, stall)
  within(name, stall.turns.cpuMs, budget.stallMs)
}
// The first starts the thread for long prompts and fills its cache; the server compiles what it runs.
for (const dialect of dialects) await answered(server.url + dialect.path, dialect.large(bodyBytes))
for (const { body, name, path } of largePrompts(bodyBytes)) {
  const stall = await stallOf(server, path, body)
  stallRow(`10 MB, prompt, ${name}`, stall)
  within(`10 MB, prompt, ${name}`, stall.turns.cpuMs, budget.stallMs)
}

console.log(missed.length === 0 ? "every budget holds" : `over budget: ${missed.join("; ")}`)
agent.destroy()
server.close()
if (missed.length > 0) process.exitCode = 1
