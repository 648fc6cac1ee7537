import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import { Tracing } from "../../../src/telemetry/Spans.ts"
import * as Traces from "../../../src/telemetry/Traces.ts"
import { SocketClient } from "../../support/SocketClient.ts"
import { eventually, harness, tokensOf, user } from "../server/harness.ts"

interface WireValue {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly arrayValue?: { readonly values: ReadonlyArray<WireValue> }
}

interface WireSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: WireValue }>
  readonly events: ReadonlyArray<unknown>
  readonly status: { readonly code?: number; readonly message?: string }
}

const valueOf = ({ arrayValue, intValue, stringValue }: WireValue): unknown =>
  arrayValue === undefined ? stringValue ?? Number(intValue) : arrayValue.values.map(valueOf)

const attributesOf = (span: WireSpan | undefined) =>
  Object.fromEntries((span?.attributes ?? []).map(({ key, value }) => [key, valueOf(value)]))

const read = async (request: IncomingMessage) => {
  let text = ""
  for await (const chunk of request) text += chunk
  return text
}

/** An OTLP/HTTP collector on a free port. */
const collector = Effect.acquireRelease(
  Effect.promise(async () => {
    const bodies: Array<string> = []
    const paths: Array<string> = []
    const server = createServer((request, response) => {
      paths.push(request.url ?? "")
      void read(request).then((body) => {
        bodies.push(body)
        response.setHeader("content-type", "application/json").end("{}")
      })
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    const spans = (): ReadonlyArray<WireSpan> =>
      bodies.flatMap((body) => JSON.parse(body).resourceSpans).flatMap(({ scopeSpans }) => scopeSpans).flatMap(({ spans }) => spans)
    return { server, bodies, paths, spans, url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}` }
  }),
  ({ server }) => Effect.sync(() => server.close())
)

const environment = (values: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => Object.assign(process.env, values)),
    () => Effect.sync(() => Object.keys(values).forEach((name) => delete process.env[name]))
  )

const traceId = "0af7651916cd43dd8448eb211c80319c"
const callerSpan = "b7ad6b7169203331"

describe("traces", () => {
  it.live("are of every step of a request, in the caller's trace, and hold no content", () =>
    Effect.gen(function*() {
      const { bodies, paths, spans, url } = yield* collector
      yield* environment({ OTEL_EXPORTER_OTLP_ENDPOINT: url })
      const tracing = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Traces.layer, tracing)
      const serving = yield* Scope.make()
      const server = yield* harness({
        script: {
          answer: (_, index) =>
            index === 2
              ? { tokens: [], fault: { _tag: "Failed", afterTokens: 0, code: "inconsistent", message: "canary engine" } }
              : { tokens: tokensOf("canaryoutput"), delay: "20 millis", interval: "2 millis", cachedTokens: 4 }
        }
      }).pipe(Effect.provide(context), Scope.provide(serving))
      const headers = { traceparent: `00-${traceId}-${callerSpan}-01`, authorization: "Bearer canarykey", "x-session-id": "canarysession" }
      const send = (body: object, path = "/v1/chat/completions") =>
        Effect.promise(() =>
          fetch(server.url + path, {
            method: "POST",
            body: JSON.stringify(body),
            headers: { "content-type": "application/json", ...headers }
          })
            .then(async (response) => ({ status: response.status, text: await response.text() }))
        )
      for (const stream of [false, true]) assert.strictEqual((yield* send({ messages: user("canaryprompt"), stream })).status, 200)
      assert.strictEqual((yield* send({ messages: user("canaryprompt") })).status, 500)
      assert.strictEqual((yield* send({ messages: user("canaryprompt"), model: "canarymodel" })).status, 404)
      assert.strictEqual((yield* send({ messages: user("no template") })).status, 400)
      assert.strictEqual((yield* send({}, "/canarypath?canary=query")).status, 404)
      yield* Effect.promise(() =>
        fetch(`${server.url}/v1/models`, { headers: { traceparent: `00-${traceId}-${callerSpan}-00` } }).then((response) => response.text())
      )
      yield* Scope.close(serving, Exit.void)
      yield* Scope.close(tracing, Exit.void)
      yield* Effect.promise(() => eventually(() => spans().filter((span) => span.kind === 2).length === 6))

      assert.isTrue(paths.every((path) => path === "/v1/traces"))
      assert.notMatch(bodies.join(""), /canary|no template|roles must alternate/)
      const requests = spans().filter((span) => span.kind === 2)
      for (const span of requests) {
        assert.strictEqual(span.traceId, traceId)
        assert.strictEqual(span.parentSpanId, callerSpan)
      }
      const [whole, streamed, failed, unknownModel, refused, unrouted] = requests
      for (const span of [whole, streamed]) {
        assert.isDefined(span)
        assert.strictEqual(span.name, "POST /v1/chat/completions")
        assert.deepInclude(attributesOf(span), {
          "http.request.method": "POST",
          "http.route": "/v1/chat/completions",
          "http.response.status_code": 200,
          "gen_ai.operation.name": "chat",
          "gen_ai.request.model": "demo/model",
          "gen_ai.usage.input_tokens": "user:canaryprompt|".length,
          "gen_ai.usage.cache_read.input_tokens": 4,
          "gen_ai.usage.output_tokens": "canaryoutput".length,
          "gen_ai.response.finish_reasons": ["stop"]
        })
        const within = (parent: WireSpan): ReadonlyArray<WireSpan> =>
          spans().filter(({ parentSpanId }) => parentSpanId === parent.spanId).flatMap((child) => [child, ...within(child)])
        const steps = new Map(within(span).map((child) => [child.name, child]))
        for (const name of ["render", "tokenize", "plan", "queue", "prefill", "decode"]) {
          const step = steps.get(name)
          assert.isDefined(step, name)
          assert.strictEqual(step?.traceId, traceId)
          assert.isAtLeast(Number(step?.endTimeUnixNano), Number(step?.startTimeUnixNano))
          assert.isAtLeast(Number(span.endTimeUnixNano) + 1e6, Number(step?.endTimeUnixNano), name)
        }
        const millis = (name: string) => (Number(steps.get(name)?.endTimeUnixNano) - Number(steps.get(name)?.startTimeUnixNano)) / 1e6
        assert.isAtLeast(millis("prefill"), 15)
        assert.isAtLeast(millis("decode"), 11)
        assert.isAtLeast(Number(steps.get("decode")?.startTimeUnixNano), Number(steps.get("prefill")?.endTimeUnixNano) - 1e6)
      }
      assert.deepInclude(attributesOf(failed), { "http.response.status_code": 500, "error.type": "EngineError.Internal" })
      assert.deepInclude(failed?.status, { code: 2, message: "EngineError.Internal" })
      assert.deepInclude(attributesOf(unknownModel), { "http.response.status_code": 404, "error.type": "ModelNotFound" })
      assert.strictEqual(unknownModel?.status.code, 1)
      assert.deepInclude(attributesOf(refused), { "http.response.status_code": 400, "error.type": "TemplateError" })
      assert.strictEqual(unrouted?.name, "POST unknown")
    }))

  it.live("are of every response of a WebSocket, in the trace of its connection or in its own", () =>
    Effect.gen(function*() {
      const { spans, url } = yield* collector
      yield* environment({ OTEL_EXPORTER_OTLP_ENDPOINT: url })
      const tracing = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Traces.layer, tracing)
      const serving = yield* Scope.make()
      const server = yield* harness({ script: { answer: () => ({ tokens: tokensOf("ab") }) }, settings: { websocket: true } }).pipe(
        Effect.provide(context),
        Scope.provide(serving)
      )
      const own = { traceId: "5bf7651916cd43dd8448eb211c80319d", spanId: "c8ad6b7169203332" }
      yield* Effect.promise(async () => {
        const client = await SocketClient.open(server.url, { traceparent: `00-${traceId}-${callerSpan}-01` })
        client.send({ input: "hi" })
        await client.answer()
        client.send({ input: "hi", client_metadata: { ws_request_header_traceparent: `00-${own.traceId}-${own.spanId}-01` } })
        await client.answer()
        client.send("no JSON")
        await client.answer()
        await client.close()
        await eventually(() => server.log.length === 4)
      })
      yield* Scope.close(serving, Exit.void)
      yield* Scope.close(tracing, Exit.void)
      yield* Effect.promise(() => eventually(() => spans().filter((span) => span.kind === 2).length === 4))
      const requests = spans().filter((span) => span.kind === 2)
      assert.deepStrictEqual(requests.map((span) => [span.traceId, span.parentSpanId]), [
        [traceId, callerSpan],
        [own.traceId, own.spanId],
        [traceId, callerSpan],
        [traceId, callerSpan]
      ])
      assert.deepStrictEqual(requests.map((span) => attributesOf(span)["http.response.status_code"]), [200, 200, 400, 101])
      for (const span of requests.slice(0, 2)) {
        assert.deepInclude(attributesOf(span), { "http.route": "/v1/responses", "gen_ai.usage.output_tokens": 2 })
        assert.isTrue(spans().some(({ name, traceId: trace }) => name === "decode" && trace === span.traceId))
      }
    }))

  it.live("are off without an endpoint", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(Traces.layer)
      assert.isFalse(yield* Tracing.pipe(Effect.provide(context)))
      assert.strictEqual(yield* Effect.tracer.pipe(Effect.provide(context)), yield* Effect.tracer)
    }))
})
