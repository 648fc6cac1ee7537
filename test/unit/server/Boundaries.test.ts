import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { openApi } from "../../../schema/Api.ts"
import { holds, type Node, type Schemas } from "../../support/JsonSchema.ts"
import { property, takesType, variants } from "../../support/OpenApiFacts.ts"
import { harness, tokensOf, user } from "./harness.ts"

const schemas: Schemas = JSON.parse(JSON.stringify(openApi().components.schemas))

const messages = user("hi")

/** Each generating route, its schema, the least body, and what makes some of its fields possible at all. */
const routes: ReadonlyArray<readonly [path: string, schema: string, body: object]> = [
  ["/v1/chat/completions", "ChatCompletionRequest", { messages, logprobs: true }],
  ["/v1/completions", "CompletionRequest", { prompt: "hi" }],
  ["/v1/messages", "MessagesRequest", { messages }],
  ["/v1/responses", "ResponsesRequest", { input: "hi" }]
]

const values: ReadonlyArray<unknown> = [-1, 0, 2 ** 31, 2 ** 53, 1e308, "NaN", null]

const numberFields = (schema: string): ReadonlyArray<readonly [name: string, nodes: ReadonlyArray<Node>]> =>
  Object.keys(variants(schemas, { $ref: schema })[0]?.properties ?? {})
    .map((name) => [name, property(schemas, variants(schemas, { $ref: schema }), name)] as const)
    .filter(([, nodes]) => nodes.some((node) => node.type === "number" || node.type === "integer") && !takesType(nodes, "array"))

/** Numbers inside of fields, and which of the values they take; null is a value there. */
const inner: ReadonlyArray<
  readonly [name: string, path: string, fields: (value: unknown) => object, taken: ReadonlyArray<unknown>]
> = [
  ...routes.map(([path]) => ["logit_bias.1", path, (value: unknown) => ({ logit_bias: { "1": value } }), [-1, 0]] as const),
  ...routes.slice(0, 2).map(([path]) => ["stop_token_ids.0", path, (value: unknown) => ({ stop_token_ids: [value] }), [0]] as const),
  ["prompt.0", "/v1/completions", (value) => ({ prompt: [value] }), [0, "NaN"]],
  ["prompt.0", "/v1/completions", (value) => ({ prompt: [[value]] }), [0]],
  [
    "thinking.budget_tokens",
    "/v1/messages",
    (value) => ({ thinking: { type: "enabled", budget_tokens: value } }),
    [-1, 0, 2 ** 31, 2 ** 53, 1e308, null]
  ]
]

interface Answer {
  readonly error?: { readonly message: string; readonly type: string; readonly param?: string | null }
}

const script = { answer: () => ({ tokens: [...tokensOf("ok"), 3] }) }

/** A request is answered, or refused with 400 and the field's name. */
const expectAnswer = (url: string, path: string, body: object, name: string, allowed: boolean) =>
  Effect.promise(async () => {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    const { error }: Answer = JSON.parse(await response.text())
    const label = `${path} ${name} ${JSON.stringify(body)} ${error?.message}`
    assert.strictEqual(response.status, allowed ? 200 : 400, label)
    if (allowed) return
    assert.strictEqual(error?.type, "invalid_request_error", label)
    assert.isTrue(error?.message.startsWith(`${name}: `), label)
    if (path !== "/v1/messages") assert.strictEqual(error?.param, name, label)
  })

const leastBody = (path: string) => routes.find(([own]) => own === path)?.[2] ?? {}

describe("every number", () => {
  for (const [path, schema, body] of routes) {
    it.live(`of ${path} takes what its bounds allow and is named by the refusal of all else`, () =>
      Effect.gen(function*() {
        const fields = numberFields(schema)
        assert.isAtLeast(fields.length, 14)
        const { url } = yield* harness({ script })
        for (const [name, nodes] of fields) {
          for (const value of values) {
            const allowed = value === null || (nodes[0] !== undefined && holds(schemas, nodes[0], value))
            yield* expectAnswer(url, path, { ...body, [name]: value }, name, allowed)
          }
        }
      }))
  }

  it.live("inside of a field too", () =>
    Effect.gen(function*() {
      const { url } = yield* harness({ script })
      for (const [name, path, fields, taken] of inner) {
        for (const value of values) {
          yield* expectAnswer(url, path, { ...leastBody(path), ...fields(value) }, name, taken.includes(value))
        }
      }
    }))
})
