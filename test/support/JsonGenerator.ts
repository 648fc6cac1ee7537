import { type Node, resolve, type Schemas } from "./JsonSchema.ts"
import { pick } from "./Random.ts"

type Next = () => number

const texts = ["", "hi", "a b", "é\n", "auto", "none", "text", "function", "custom", "f", "demo/model", "message", "😀"] as const

/** Values of any kind: what an open schema takes, and what replaces a part of a request. */
const values = [
  null,
  true,
  false,
  -1,
  0,
  1,
  0.5,
  2 ** 31,
  2 ** 53,
  1e308,
  "",
  "NaN",
  "text",
  "x".repeat(300),
  [],
  [""],
  [[]],
  [{}],
  {},
  { type: "text" },
  { role: "user", content: "x" }
] as const

/** What the values of fields look like in practice, so that requests get past the first field that says what they are. */
const usual: Readonly<Record<string, readonly [string, ...ReadonlyArray<string>]>> = {
  model: ["demo/model", "demo/model", "other"],
  type: ["text", "input_text", "output_text", "function", "tool_result", "tool_use", "thinking", "image", "refusal", "json_object"],
  tool_choice: ["auto", "none", "required", "sometimes"],
  truncation: ["disabled", "auto"]
}

const text = (node: Node, name: string, next: Next): string => {
  const { pattern } = node
  const list = next() < 0.8 ? usual[name] ?? texts : texts
  const own = pick(next, list)
  if (pattern !== undefined && !new RegExp(pattern, "u").test(own)) return next() < 0.5 ? "web_search" : "f"
  return own.length < (node.minLength ?? 0) ? "stop" : own
}

const number = (node: Node, next: Next): number => {
  const low = node.minimum ?? node.exclusiveMinimum ?? -1000
  const high = node.maximum ?? node.exclusiveMaximum ?? 1000
  const kind = next()
  if (node.type === "integer") return kind < 0.1 ? high : kind < 0.2 ? low : Math.max(low, 0) + Math.floor(next() * Math.min(high - low, 6))
  return kind < 0.1 ? high : kind < 0.2 ? low : low + next() * (high - low)
}

/** Fields inside of objects that few clients leave out. */
const expected: ReadonlySet<string> = new Set(["content", "text"])

/** Fields that are mostly refused, whatever their value: seldom there, so that they do not hide the others. */
const seldom: ReadonlySet<string> = new Set([
  "add_special_tokens",
  "background",
  "continue_final_message",
  "conversation",
  "echo",
  "functions",
  "logit_bias",
  "modalities",
  "output_format",
  "prompt",
  "response_format",
  "suffix",
  "thread"
])

/** How probable it is that an optional field is there. */
const probability = (name: string, node: Node, depth: number): number =>
  depth > 0 ? expected.has(name) ? 0.95 : 0.4 : node.required === undefined ? 0.35 : seldom.has(name) ? 0.02 : 0.12

/** A value that is mostly what the schema allows, of at most some levels of optional fields. */
export const generate = (schemas: Schemas, schema: Node, next: Next, name = "", depth = 0): unknown => {
  const node = resolve(schemas, schema)
  const choices = node.anyOf ?? node.oneOf ?? []
  const [first, ...others] = next() < 0.9 ? choices.filter((own) => own.type !== "null") : choices
  if (first !== undefined) return generate(schemas, pick(next, [first, ...others]), next, name, depth)
  const [value, ...further] = node.enum ?? []
  if (value !== undefined) return pick(next, [value, ...further])
  switch (node.type) {
    case "null":
      return null
    case "boolean":
      return next() < 0.5
    case "integer":
    case "number":
      return number(node, next)
    case "string":
      return text(node, name, next)
    case "array": {
      const length = (node.minItems ?? 0) + Math.floor(next() * 3)
      return Array.from({ length }, () => generate(schemas, node.items ?? {}, next, name, depth + 1))
    }
    case "object": {
      const fields = Object.entries(node.properties ?? {}).filter(([own]) =>
        node.required?.includes(own) === true || next() < probability(own, node, depth)
      )
      const object = fields.map(([own, inner]): readonly [string, unknown] => [own, generate(schemas, inner, next, own, depth + 1)])
      const { additionalProperties: more } = node
      if (typeof more === "object") object.push([pick(next, ["1", "enable_thinking", "a"]), generate(schemas, more, next, "", depth + 1)])
      return Object.fromEntries(object)
    }
    default:
      return pick(next, values)
  }
}

/** The value with one of its parts, somewhere, replaced or removed; an object stays one. */
export const mutate = (value: unknown, next: Next, depth = 0): unknown => {
  if (typeof value !== "object" || value === null || (depth > 0 && next() < 0.15)) return pick(next, values)
  if (Array.isArray(value)) {
    if (value.length === 0) return [pick(next, values)]
    const at = Math.floor(next() * value.length)
    return next() < 0.15 ? value.toSpliced(at, 1) : value.with(at, mutate(value[at], next, depth + 1))
  }
  const [first, ...others] = Object.entries(value)
  if (first === undefined) return { a: pick(next, values) }
  const [chosen, inner] = pick(next, [first, ...others])
  const rest = { ...value }
  if (next() < 0.15) Reflect.deleteProperty(rest, chosen)
  else Object.assign(rest, { [chosen]: mutate(inner, next, depth + 1) })
  return rest
}
