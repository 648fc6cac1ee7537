import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { request as httpRequest } from "node:http"
import { join } from "node:path"
import { ResponseObject } from "../../../schema/openai/Responses.ts"
import { checkResponseEvents, checkResponsesStream } from "../../support/ResponsesStreamChecker.ts"
import { SocketClient } from "../../support/SocketClient.ts"
import { errorOf, type Harness, harness, textOf, tokensOf } from "./harness.ts"

const captures = join(import.meta.dirname, "../../fixtures/captures")

const Capture = Schema.Struct({
  request: Schema.Struct({
    method: Schema.String,
    path: Schema.String,
    headers: Schema.Record(Schema.String, Schema.String),
    body: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
  })
})

const readCapture = Schema.decodeUnknownSync(Schema.fromJsonString(Capture))
const readResponse = Schema.decodeUnknownPromise(ResponseObject)

const files = readdirSync(captures, { withFileTypes: true })
  .filter((folder) => folder.isDirectory() && folder.name !== "golden-responses")
  .flatMap((folder) => readdirSync(join(captures, folder.name)).map((file) => `${folder.name}/${file}`))
  .filter((name) => /responses/.test(name))
  .map((name) => ({ name, capture: readCapture(readFileSync(join(captures, name), "utf8")) }))

/** What is not 200, and the field that is named. */
const refused: Readonly<Record<string, readonly [number, string | null]>> = {
  // Pictures in the newest turn.
  "codex/11-responses.json": [400, "input.3.content.1"],
  "opencode/17-responses.json": [400, "input.1.content.2"],
  "pi/12-responses.json": [400, "input.1.content.1"],
  // Responses of another server.
  "sdk-openai/21-responses.json": [404, "previous_response_id"],
  "sdk-openai/22-get_v1_responses_resp_123.json": [404, "response_id"],
  // WebSocket.
  "codex/21-get_responses.json": [426, null]
}

const transport = new Set(["host", "connection", "content-length", "accept-encoding", "sec-fetch-mode", "keep-alive"])

const headersOf = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !transport.has(name.toLowerCase())))

/** Sent by Node's own client, which lets a request ask for an upgrade. */
const send = (server: Harness, { body, headers, method, path }: typeof Capture.Type["request"]) =>
  Effect.promise(() =>
    new Promise<Response>((resolve, reject) => {
      const upgrade = method === "GET" && path === "/v1/responses" ? { connection: "Upgrade" } : {}
      const request = httpRequest(`${server.url}${path}`, { method, headers: { ...headersOf(headers), ...upgrade } })
      request.on("error", reject)
      request.on("upgrade", () => reject(new Error("upgraded")))
      request.on("response", (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk: string) => text += chunk)
        response.on("end", () =>
          resolve(
            new Response(text, { status: response.statusCode ?? 0, headers: { "content-type": response.headers["content-type"] ?? "" } })
          ))
      })
      request.end(body === undefined ? undefined : JSON.stringify({ ...body, model: "demo/model" }))
    })
  )

const call = (name: string, args: string) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`

describe("requests of real clients", () => {
  it("are all here", () => {
    assert.strictEqual(files.length, 55)
    for (const name of Object.keys(refused)) assert.isTrue(files.some((file) => file.name === name), name)
  })

  for (const { capture: { request }, name } of files) {
    it.live(name, () =>
      Effect.gen(function*() {
        const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("I will run a command.") }) } })
        const response = yield* send(server, request)
        const [status, param] = refused[name] ?? [200, null]
        const text = yield* Effect.promise(() => response.clone().text())
        assert.strictEqual(response.status, status, text)
        if (status !== 200) {
          assert.strictEqual((yield* Effect.promise(() => errorOf(response))).param, param)
          return
        }
        const stream = request.body?.["stream"] === true
        assert.strictEqual(response.headers.get("content-type"), stream ? "text/event-stream" : "application/json")
        const answer = stream ? checkResponsesStream(text).response : yield* Effect.promise(() => readResponse(JSON.parse(text)))
        assert.strictEqual(answer.status, request.body?.["max_output_tokens"] === 1 ? "incomplete" : "completed")
        assert.deepStrictEqual(answer.tools, request.body?.["tools"] ?? [])
        const prompt = textOf(server.engine.requests[0]!.tokens)
        assert.isTrue(prompt.length > 5)
        assert.notInclude(prompt, "undefined")
      }))
  }
})

describe("requests of real clients over a WebSocket", () => {
  it.live("have the answers that they have over HTTP, on a connection as Codex asks for it", () =>
    Effect.gen(function*() {
      const server = yield* harness({
        script: { answer: () => ({ tokens: tokensOf("I will run a command.") }) },
        settings: { websocket: true },
        limits: { bodyBytes: 1 << 24 }
      })
      const codex = files.find(({ name }) => name === "codex/21-get_responses.json")
      assert.isDefined(codex)
      const own = Object.entries(headersOf(codex.capture.request.headers)).filter(([name]) => !/^(upgrade|sec-websocket-.*)$/i.test(name))
      const client = yield* Effect.promise(() => SocketClient.open(server.url, Object.fromEntries(own)))
      let answered = 0
      for (const { capture: { request: { body, method, path } }, name } of files) {
        if (method !== "POST" || path !== "/v1/responses" || body === undefined) continue
        client.send({ ...body, model: "demo/model" })
        const events = yield* Effect.promise(() => client.answer())
        const [status, param] = refused[name] ?? [200, null]
        const last = events.at(-1)
        if (status === 200) {
          const { response } = checkResponseEvents(events)
          assert.deepStrictEqual(response.tools, body["tools"] ?? [], name)
          answered++
        } else {
          assert.strictEqual(last?.type, "error", name)
          if (last !== undefined && "error" in last) assert.strictEqual(last.error.param, param, name)
        }
      }
      assert.isAtLeast(answered, 30)
      yield* Effect.promise(() => client.close())
    }))
})

interface GoldenEvent {
  readonly type: string
  readonly [key: string]: unknown
}

const goldenEvents = (body: string): ReadonlyArray<GoldenEvent> =>
  body.split("\n\n").filter((frame) => frame !== "").map((frame) => JSON.parse(frame.slice(frame.indexOf("data: ") + 6)))

const collapsed = (events: ReadonlyArray<{ readonly type: string }>) =>
  events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1] || !type.endsWith("delta"))

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Every key of the golden event is in ours, down to its items. */
const assertHasKeys = (ours: unknown, golden: unknown, path: string): void => {
  if (Array.isArray(golden)) {
    assert.isTrue(Array.isArray(ours), path)
    return
  }
  if (!isRecord(golden)) {
    assert.isDefined(ours, path)
    return
  }
  assert.ok(isRecord(ours), path)
  for (const [key, value] of Object.entries(golden)) {
    // The reasoning can be sealed only when it is over.
    if (path !== "response.output_item.added.item" || key !== "encrypted_content") assertHasKeys(ours[key], value, `${path}.${key}`)
  }
}

const patch = "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch"

describe("golden streams", () => {
  const cases: ReadonlyArray<readonly [name: string, body: object, says: string]> = [
    ["responses-text.sse", {}, "Hello from mashbox."],
    ["responses-tool.sse", {}, `I will run a command.\n${call("bash", "{\"command\":\"echo hi\"}")}`],
    [
      "responses-thinking_tool.sse",
      { reasoning: { effort: "high", summary: "auto" }, include: ["reasoning.encrypted_content"] },
      `let me think about it</think>\n\nI will run a command.\n${call("bash", "{\"command\":\"echo hi\"}")}`
    ],
    ["responses-custom_tool.sse", {}, call("apply_patch", JSON.stringify({ input: patch }))],
    ["responses-namespace_tool.sse", {}, call("multi_agent_v1__spawn_agent", "{\"message\":\"hi\"}")]
  ]
  const tools = [
    { type: "function", name: "bash" },
    { type: "custom", name: "apply_patch" },
    { type: "namespace", name: "multi_agent_v1", tools: [{ type: "function", name: "spawn_agent" }] }
  ]
  for (const [name, body, says] of cases) {
    it.live(`${name} has our grammar`, () =>
      Effect.gen(function*() {
        const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf(says) }) } })
        const response = yield* Effect.promise(() =>
          fetch(`${server.url}/v1/responses`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ input: "go", stream: true, tools, ...body })
          })
        )
        const { events } = checkResponsesStream(yield* Effect.promise(() => response.text()))
        const golden = goldenEvents(readFileSync(join(captures, "golden-responses", name), "utf8"))
        // Our calls always come after a message, which is empty where there is no text.
        const empty = golden.some((event) => isRecord(event["item"]) && event["item"]["type"] === "message")
          ? []
          : ["output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done"]
        const expected = collapsed(golden)
        assert.deepStrictEqual(
          collapsed(events),
          [...expected.slice(0, 2), ...empty.map((type) => `response.${type}`), ...expected.slice(2)]
        )
        for (const event of golden) {
          const same = events.filter(({ item, type }) =>
            type === event.type && (!isRecord(event["item"]) || item?.type === event["item"]["type"])
          )
          assert.isAbove(same.length, 0)
          for (const ours of same) assertHasKeys(ours, event, event.type)
        }
        const whole = (list: unknown) =>
          Array.isArray(list)
            ? list.filter(isRecord).map(({ arguments: args, content, input, name, namespace, summary, type }) =>
              JSON.stringify({ args, content, input, name, namespace, summary, type })
            )
            : []
        const last = golden.at(-1)?.["response"]
        const goldenOutput = whole(isRecord(last) ? last["output"] : [])
        assert.deepStrictEqual(whole(events.at(-1)?.response?.output).slice(-goldenOutput.length), goldenOutput)
      }))
  }
})
