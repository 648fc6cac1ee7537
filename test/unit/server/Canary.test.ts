import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SocketClient } from "../../support/SocketClient.ts"
import { eventually, harness, leaving, tokensOf } from "./harness.ts"

/** One for each place that a client's or the model's text can be in; none may be anywhere but in answers. */
const canary = {
  prompt: "canary-prompt-4af1",
  system: "canary-system-9c02",
  toolArguments: "canary-arguments-77be",
  toolResult: "canary-result-31dd",
  output: "canary-output-e805",
  key: "sk-canary-key-b64f",
  wrongKey: "sk-canary-wrong-0d19",
  user: "canary-user-5a5a",
  session: "canary-session-1e2e",
  query: "canary-query-66cc",
  header: "canary-header-d0d0",
  model: "canary-model-2b2b",
  template: "no template"
}

const conversation = [
  { role: "system", content: canary.system },
  { role: "user", content: canary.prompt },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: JSON.stringify({ a: canary.toolArguments }) } }]
  },
  { role: "tool", tool_call_id: "call_1", content: canary.toolResult }
]

const anthropic = [{ role: "user", content: canary.prompt }]

const bodies: ReadonlyArray<readonly [path: string, body: Record<string, unknown>]> = [
  ["/v1/chat/completions", { messages: conversation, user: canary.user, prompt_cache_key: canary.session }],
  ["/v1/completions", { prompt: canary.prompt, user: canary.user }],
  ["/v1/responses", { input: canary.prompt, instructions: canary.system, user: canary.user, prompt_cache_key: canary.session }],
  ["/v1/messages", { model: "demo/model", max_tokens: 50, system: canary.system, messages: anthropic, metadata: { user_id: canary.user } }]
]

/** Values of the wrong kind whose text an error could repeat. */
const wrongFields: ReadonlyArray<Record<string, unknown>> = [
  { temperature: canary.prompt },
  { messages: canary.prompt },
  { messages: [{ role: canary.prompt, content: canary.prompt }] },
  { messages: [{ role: "user", content: [{ type: canary.prompt, text: canary.prompt }] }] },
  { input: { type: canary.prompt } },
  { stop: [canary.prompt, 1] },
  { logit_bias: { "1": canary.prompt } },
  { max_tokens: canary.prompt },
  { model: canary.model },
  { stream: canary.prompt },
  { tools: [{ type: "function", function: { name: canary.prompt, parameters: canary.prompt } }] },
  { tool_choice: canary.prompt },
  { response_format: { type: canary.prompt } },
  { reasoning_effort: canary.prompt },
  { chat_template_kwargs: { a: [canary.prompt] } }
]

const secrets = Object.entries(canary).filter(([name]) => name !== "template").map(([, text]) => text)

/** The error objects in the events of a stream. */
const errorsOf = (stream: string): string =>
  JSON.stringify(
    stream.split("\n").filter((line) => line.startsWith("data: {")).flatMap((line) => {
      const event = JSON.parse(line.slice(6))
      return [event.error ?? event.response?.error ?? []].flat()
    })
  )

const assertNone = (text: string, where: string) => {
  for (const secret of secrets) assert.isFalse(text.includes(secret), `${secret} in ${where}: ${text.slice(0, 600)}`)
}

const keyFile = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "mashbox-canary-"))
    writeFileSync(join(folder, "keys"), `team:${canary.key}\n`)
    return { folder, path: join(folder, "keys") }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

describe("what clients and the model say", () => {
  it.live("is in answers alone: in no log, metric or error, however a request ends", () =>
    Effect.gen(function*() {
      const { path: apiKeyFile } = yield* keyFile
      let next: "ok" | "failed" | "lost" | "hang" | "defect" = "ok"
      const server = yield* harness({
        settings: { apiKeyFile, websocket: true },
        limits: { headMs: 1 },
        script: {
          answer: () => {
            switch (next) {
              case "ok":
              case "defect":
                return { tokens: tokensOf(canary.output) }
              case "failed":
                return {
                  tokens: tokensOf(canary.output),
                  fault: { _tag: "Failed", afterTokens: 4, code: "inconsistent", message: canary.prompt }
                }
              case "lost":
                return { tokens: tokensOf(canary.output), fault: { _tag: "WorkerLost", afterTokens: 0 } }
              case "hang":
                return { tokens: tokensOf(canary.output), fault: { _tag: "Hang", afterTokens: 4 } }
            }
          }
        },
        decode: (token) => {
          if (next === "defect") throw new Error(`cannot decode ${canary.output}`)
          return String.fromCharCode(token)
        }
      })
      const headers = {
        "content-type": "application/json",
        authorization: `Bearer ${canary.key}`,
        "x-session-id": canary.session,
        "x-canary": canary.header,
        "user-agent": canary.header,
        "x-request-id": `${canary.header} ${canary.key}`
      }
      const send = (path: string, body: unknown, own: Record<string, string> = {}, signal?: AbortSignal) =>
        fetch(`${server.url}${path}?q=${canary.query}`, {
          method: "POST",
          body: typeof body === "string" ? body : JSON.stringify(body),
          headers: { ...headers, ...own },
          ...(signal === undefined ? {} : { signal })
        })
      let sent = 0
      let refusals = 0
      const failing = (path: string, body: unknown, own: Record<string, string> = {}) =>
        Effect.promise(async () => {
          sent++
          const response = await send(path, body, own)
          const text = await response.text()
          const what = `${path} for ${JSON.stringify(body).slice(0, 300)}`
          assertNone(JSON.stringify([...response.headers]), `the headers of ${what}`)
          if (response.status < 400) return
          refusals++
          assertNone(text, `the error of ${what}`)
        })

      for (const [path, body] of bodies) {
        for (const stream of [false, true]) {
          next = "ok"
          sent++
          const text = yield* Effect.promise(() => send(path, { ...body, stream }).then((response) => response.text()))
          assert.isTrue(stream || text.includes(canary.output), `${path}: ${text}`)
          next = "hang"
          if (stream) {
            sent++
            const controller = leaving()
            const running = yield* Effect.promise(() => send(path, { ...body, stream }, {}, controller.signal))
            assert.strictEqual(running.status, 200)
            yield* Effect.promise(() => eventually(() => server.engine.running() === 1))
            controller.abort()
            yield* Effect.promise(() => eventually(() => server.engine.running() === 0))
          }
          for (const fault of ["failed", "lost", "defect"] as const) {
            next = fault
            sent++
            const response = yield* Effect.promise(() => send(path, { ...body, stream }))
            const text = yield* Effect.promise(() => response.text().catch(() => ""))
            const errors = response.status === 200 ? errorsOf(text) : text
            if (response.status === 200 && fault === "failed") assert.notStrictEqual(errors, "[]", `${path}: ${text}`)
            assertNone(errors, `${fault} of ${path}`)
          }
        }
        next = "ok"
        for (const wrong of wrongFields) {
          const [name = ""] = Object.keys(wrong)
          if (!(name in body) && !path.includes("chat") && !["temperature", "max_tokens", "stream", "model"].includes(name)) continue
          yield* failing(path, { ...body, ...wrong })
        }
        yield* failing(path, `{"${canary.prompt}":`)
        yield* failing(path, `["${canary.prompt}"]`)
        yield* failing(path, body, { authorization: `Bearer ${canary.wrongKey}` })
        yield* failing(path, body, { origin: `http://${canary.header}` })
        yield* failing(path, canary.prompt, { "content-type": `text/${canary.header}` })
        yield* failing(path, canary.prompt, { "content-encoding": canary.header })
        yield* failing(path, canary.prompt.repeat(5_000))
        yield* failing(`/${canary.query}${path}`, body)
      }
      yield* failing("/v1/chat/completions", { messages: [{ role: "user", content: canary.template }] })

      const { "content-type": _, ...socketHeaders } = headers
      const socket = yield* Effect.promise(() => SocketClient.open(server.url, socketHeaders))
      const [, , [, responses] = ["", {}]] = bodies
      const messages = [
        responses,
        ...wrongFields.filter((wrong) => !("messages" in wrong)).map((wrong) => ({ ...responses, ...wrong })),
        `{"${canary.prompt}":`,
        { ...responses, type: canary.prompt },
        { ...responses, stream_id: `${canary.prompt} no name` },
        { ...responses, previous_response_id: canary.prompt },
        { ...responses, model: canary.model }
      ]
      for (const message of messages) {
        socket.send(message)
        sent++
        const last = (yield* Effect.promise(() => socket.answer())).at(-1)
        if (last?.type === "error") assertNone(JSON.stringify(last), `the error message for ${JSON.stringify(message).slice(0, 300)}`)
      }
      yield* Effect.promise(() => socket.close())
      sent++

      assert.isAtLeast(refusals, 55)

      yield* Effect.promise(() => eventually(() => server.log.filter((line) => line.includes("\"message\":\"request\"")).length >= sent))
      assertNone(server.log.join(""), "the log")
      const metrics = yield* Effect.promise(() => fetch(`${server.url}/metrics`, { headers }).then((response) => response.text()))
      assert.include(metrics, "mashbox:prompt_tokens_total")
      assertNone(metrics, "the metrics")
    }))
})
