import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type Deviation, dflashDeviations, dflashFeatures, openApiDeviations } from "../../support/Deviations.ts"
import { type DflashRow, dflashRows } from "../../support/DflashRows.ts"
import { compare, type Document, type Fact, itemsOf, property, takesType, takesValue, variants } from "../../support/OpenApiFacts.ts"
import { harness, tokensOf, user } from "../server/harness.ts"

const root = join(import.meta.dirname, "../../..")
const read = (path: string) => readFileSync(join(root, path), "utf8")

const spec: Document = JSON.parse(read("test/fixtures/spec/mashbox-openapi-0.1.13.json"))
const own: Document = JSON.parse(read("schema/openapi.json"))
const { schemas } = own.components

/** Every fact is held or a listed deviation; every deviation is about facts that are not held, and the test that it names exists. */
const conform = (facts: ReadonlyArray<Fact>, deviations: ReadonlyArray<Deviation>) => {
  const open = facts.filter(({ held }) => !held).map(({ name }) => name)
  assert.deepStrictEqual(open.filter((name) => !deviations.some(({ facts }) => facts.test(name))), [], "neither held nor listed")
  assert.deepStrictEqual(
    deviations.filter(({ facts }) => !open.some((name) => facts.test(name))).map(({ reason }) => reason),
    [],
    "listed for nothing"
  )
}

const assertProof = (proof: string) => {
  const [file = "", name = ""] = proof.split(" > ")
  const text = read(`test/unit/${file}`)
  assert.isTrue(
    [`"${name}"`, `\`${name}\``].some((quoted) =>
      text.includes(`it(${quoted}`) || text.includes(`it.live(${quoted}`) || text.includes(`it.effect(${quoted}`)
    ),
    proof
  )
}

describe("mashbox-openapi-0.1.13.json", () => {
  const facts = compare(spec, own)

  it("is held by schema/openapi.json, but for documented deviations", () => {
    assert.isAbove(facts.length, 1_200)
    assert.isAtLeast(facts.filter(({ held }) => held).length, facts.length - 60)
    conform(facts, openApiDeviations)
  })

  it("is compared for real: what is taken away is missed", () => {
    const { "/v1/messages": _, ...paths } = own.paths
    assert.isTrue(compare(spec, { ...own, paths }).some(({ held, name }) => name === "POST /v1/messages" && !held))
    const { ModelList: { properties: _properties, ...list } = {}, ...others } = schemas
    const poorer = compare(spec, { ...own, components: { schemas: { ...others, ModelList: list } } })
    assert.isTrue(poorer.some(({ held, name }) => name === "GET /v1/models 200 application/json body.data" && !held))
  })
})

const types: Readonly<Record<string, string>> = {
  string: "string",
  array: "array",
  bool: "boolean",
  int: "integer",
  float: "number",
  object: "object"
}

const requestOf = (section: string) => {
  const path = section.replace("POST ", "")
  const schema = own.paths[path]?.["post"]?.requestBody?.content?.["application/json"]?.schema
  assert.isDefined(schema, section)
  return variants(schemas, schema)
}

const parameterFacts = ({ cells: [name = "", type = "", standard = "", , status = ""], section }: DflashRow): ReadonlyArray<Fact> => {
  const at = `${section} request.${name}`
  const request = requestOf(section)
  const field = property(schemas, request, name)
  const facts = [
    { name: at, held: field.length > 0 },
    ...type.split("/").map((own) => ({ name: `${at}: type ${own}`, held: takesType(field, types[own] ?? own) }))
  ]
  if (standard === "required") facts.push({ name: `${at}: required`, held: request.some((node) => node.required?.includes(name)) })
  if (/^(false|[\d.]+)$/.test(standard)) {
    const value: unknown = JSON.parse(standard)
    facts.push({ name: `${at}: default ${String(value)}`, held: field.some((node) => node.default === value) })
  }
  if (status.startsWith("✅")) facts.push({ name: `${at}: acts`, held: !/not supported/i.test(JSON.stringify(field)) })
  return facts
}

const fieldFacts = ({ cells: [path = "", status = ""], section }: DflashRow): ReadonlyArray<Fact> => {
  const steps = path.split(" ")[0]?.split(".") ?? []
  const [whole, chunk] = ["ChatCompletion", "ChatCompletionChunk"].map((name) =>
    steps.reduce((nodes, step) => {
      const inner = property(schemas, nodes, step.replace("[]", ""))
      return step.endsWith("[]") ? itemsOf(schemas, inner) : inner
    }, variants(schemas, { $ref: name }))
  )
  const nodes = [...whole ?? [], ...chunk ?? []]
  const at = `${section} response ${path}`
  const values = [...status.matchAll(/"([\w.]+)"/g)].map(([, value]) => value)
    .concat(/\(([\w, ]+)\)/.exec(status)?.[1]?.split(", ") ?? [])
  const [, prefix] = /(\w+_)<hex>/.exec(status) ?? []
  return [
    { name: at, held: nodes.length > 0 },
    ...values.map((value) => ({ name: `${at}: value ${value}`, held: takesValue(nodes, value) })),
    ...(prefix === undefined
      ? []
      : [{ name: `${at}: ${prefix}`, held: nodes.some((node) => node.description?.includes(prefix) === true) }])
  ]
}

const timings = ["ChatUsage", "ResponsesUsage"].map((name) => property(schemas, variants(schemas, { $ref: name }), "timings"))

const rowFacts = (row: DflashRow): ReadonlyArray<Fact> => {
  const [first = "", second = ""] = row.cells
  if (row.columns[0] === "Method") {
    return second.split(", ").map((path) => ({ name: `${first} ${path}`, held: own.paths[path]?.[first.toLowerCase()] !== undefined }))
  }
  if (row.columns[0] === "Parameter") return parameterFacts(row)
  if (row.columns[0] === "Field") return fieldFacts(row)
  if (row.section === "Agent Turn Cache") {
    const [name = ""] = first.split(":")
    return timings.map((nodes, index) => ({ name: `usage.timings.${name} ${index}`, held: property(schemas, nodes, name).length > 0 }))
  }
  if (row.section === "POST /v1/messages") {
    const type = /type: "(\w+)"/.exec(first)?.[1] ?? first
    return [{
      name: `content block ${type}`,
      held: takesValue(property(schemas, variants(schemas, { $ref: "ContentBlock" }), "type"), type)
    }]
  }
  const name = `${row.section} > ${first}`
  return [{ name, held: Object.keys(dflashFeatures).some((key) => name.startsWith(key)) }]
}

describe("dflash-server-api.md", () => {
  const rows: ReadonlyArray<DflashRow> = JSON.parse(read("test/fixtures/spec/dflash-server-api.json"))

  it("has the rows of dflash-server-api.json", () => {
    assert.deepStrictEqual(dflashRows(read("test/fixtures/spec/dflash-server-api.md")), rows)
    assert.strictEqual(rows.length, 116)
  })

  it("is held row by row, but for documented deviations", () => conform(rows.flatMap(rowFacts), dflashDeviations))

  it("has every listed feature", () => {
    const names = rows.map(({ cells, section }) => `${section} > ${cells[0]}`)
    assert.deepStrictEqual(Object.keys(dflashFeatures).filter((key) => names.filter((name) => name.startsWith(key)).length !== 1), [])
  })
})

describe("the tests that deviations name", () => {
  const proofs = [...openApiDeviations, ...dflashDeviations, ...Object.values(dflashFeatures)].map(({ proof }) => proof)
  for (const proof of new Set(proofs)) it(proof.replace(" > ", ": "), () => assertProof(proof))
})

describe("deviations", () => {
  const script = { answer: () => ({ tokens: tokensOf("ok") }) }
  const messages = user("hi")

  const post = (url: string, path: string, body: object) =>
    Effect.promise(() => fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }))

  const refused = (url: string, path: string, body: object, field: string) =>
    Effect.gen(function*() {
      const response = yield* post(url, path, body)
      const answer: { readonly error: { readonly message: string } } = yield* Effect.promise(async () => JSON.parse(await response.text()))
      assert.strictEqual(response.status, 400, `${path} ${field}`)
      assert.isTrue(answer.error.message.startsWith(`${field}: `), answer.error.message)
    })

  it.live("merge is ignored by its name on every route that has it", () =>
    Effect.gen(function*() {
      const { url } = yield* harness({ script })
      const bodies = { "/v1/chat/completions": { messages }, "/v1/completions": { prompt: "hi" }, "/v1/responses": { input: "hi" } }
      for (const [path, body] of Object.entries(bodies)) {
        for (const merge of [true, false, "x"]) {
          const response = yield* post(url, path, { ...body, merge })
          assert.strictEqual(response.status, 200)
          assert.strictEqual(response.headers.get("x-mashbox-ignored"), "merge", path)
        }
      }
    }))

  it.live("n other than 1 is refused where an answer is one", () =>
    Effect.gen(function*() {
      const { url } = yield* harness({ script })
      yield* refused(url, "/v1/messages", { messages, n: 2 }, "n")
      yield* refused(url, "/v1/responses", { input: "hi", n: 2 }, "n")
    }))

  it.live("a string is no tool_choice of Messages", () =>
    Effect.gen(function*() {
      const { url } = yield* harness({ script })
      yield* refused(url, "/v1/messages", { messages, tool_choice: "auto" }, "tool_choice")
    }))

  it.live("thinking without a type is refused by its name", () =>
    Effect.gen(function*() {
      const { url } = yield* harness({ script })
      yield* refused(url, "/v1/messages", { messages, thinking: { budget_tokens: 1024 } }, "thinking.type")
    }))

  it.live("what no grammar can hold an output to is refused by its name on every route", () =>
    Effect.gen(function*() {
      const { engine, url } = yield* harness({ script })
      const unique = { items: { uniqueItems: true } }
      const schema = { type: "json_schema", name: "n", schema: unique, json_schema: { name: "n", schema: unique } }
      const cases: ReadonlyArray<readonly [path: string, body: object, field: string]> = [
        ["/v1/chat/completions", { messages, tool_choice: "required" }, "tool_choice"],
        ["/v1/chat/completions", { messages, tool_choice: { type: "function", function: { name: "f" } } }, "tool_choice"],
        ["/v1/chat/completions", { messages, response_format: schema }, "response_format.json_schema.schema.items.uniqueItems"],
        ["/v1/messages", { messages, tool_choice: { type: "any" } }, "tool_choice"],
        ["/v1/messages", { messages, tool_choice: { type: "tool", name: "f" } }, "tool_choice.name"],
        ["/v1/messages", { messages, output_format: schema }, "output_format.schema.items.uniqueItems"],
        ["/v1/responses", { input: "hi", tool_choice: "required" }, "tool_choice"],
        ["/v1/responses", { input: "hi", tool_choice: { type: "function", name: "f" } }, "tool_choice"],
        ["/v1/responses", { input: "hi", text: { format: schema } }, "text.format.schema.items.uniqueItems"]
      ]
      for (const [path, body, field] of cases) yield* refused(url, path, body, field)
      assert.strictEqual(engine.requests.length, 0)
    }))

  it.live("ids begin with chatcmpl-", () =>
    Effect.gen(function*() {
      const { url } = yield* harness({ script })
      const response = yield* post(url, "/v1/chat/completions", { messages })
      const answer: { readonly id: string } = yield* Effect.promise(async () => JSON.parse(await response.text()))
      assert.match(answer.id, /^chatcmpl-\w{8,}$/)
    }))

  it.live("the models list says that nothing is cached yet", () =>
    Effect.gen(function*() {
      const { url } = yield* harness({ script })
      const list: { readonly data: ReadonlyArray<unknown> } = yield* Effect.promise(async () =>
        JSON.parse(await (await fetch(`${url}/v1/models`)).text())
      )
      assert.deepInclude(list.data[0], { prefix_cache: false })
      assert.include(read("src/Mashbox.ts"), "prefixCache: false")
    }))
})
