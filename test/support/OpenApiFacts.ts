import { type Node, resolve, type Schemas } from "./JsonSchema.ts"

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Node }>>
}

interface Operation {
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string }>
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Schemas }
}

/** One thing that a document promises, and whether another one promises it as well. */
export interface Fact {
  readonly name: string
  readonly held: boolean
}

/** A schema and all that it is made of by anyOf, oneOf and allOf. */
export const variants = (schemas: Schemas, schema: Node): ReadonlyArray<Node> => {
  const node = resolve(schemas, schema)
  return [node, ...[...node.anyOf ?? [], ...node.oneOf ?? [], ...node.allOf ?? []].flatMap((inner) => variants(schemas, inner))]
}

export const property = (schemas: Schemas, nodes: ReadonlyArray<Node>, name: string): ReadonlyArray<Node> =>
  nodes.flatMap(({ properties }) => {
    const own = properties?.[name]
    return own === undefined ? [] : variants(schemas, own)
  })

export const itemsOf = (schemas: Schemas, nodes: ReadonlyArray<Node>): ReadonlyArray<Node> =>
  nodes.flatMap(({ items }) => items === undefined ? [] : variants(schemas, items))

const enumOf = (node: Node) => node.enum ?? (node.const === undefined ? [] : [node.const])

const typesOf = (node: Node): ReadonlyArray<string> =>
  node.type === undefined
    ? enumOf(node).map((value) => value === null ? "null" : typeof value)
    : typeof node.type === "string"
    ? [node.type]
    : node.type

/** Whether the schema says nothing about its values. */
export const isOpen = (nodes: ReadonlyArray<Node>): boolean =>
  nodes.length > 0 && nodes.every((node) => Object.keys(node).every((key) => key === "description" || key === "default"))

/** Whether a value of the type may stand there. */
export const takesType = (nodes: ReadonlyArray<Node>, type: string): boolean =>
  isOpen(nodes) || nodes.some((node) => typesOf(node).includes(type) || (type === "integer" && typesOf(node).includes("number")))

export const takesValue = (nodes: ReadonlyArray<Node>, value: unknown): boolean =>
  isOpen(nodes) || nodes.some((node) =>
    enumOf(node).includes(value) ||
    (enumOf(node).length === 0 && typesOf(node).includes(value === null ? "null" : typeof value))
  )

const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "default"] as const

/** Everything that `spec` promises, compared with `own`: each path, method, parameter, status, media type, field, type, bound, default and enum value. */
export const compare = (spec: Document, own: Document): ReadonlyArray<Fact> => {
  const facts: Array<Fact> = []
  const add = (name: string, held: boolean) => void facts.push({ name, held })
  const theirs = spec.components.schemas
  const ours = own.components.schemas

  const walk = (at: string, there: ReadonlyArray<Node>, here: ReadonlyArray<Node>, isRequest: boolean): void => {
    add(at, here.length > 0)
    if (here.length === 0) return
    for (const node of there) {
      for (const type of typesOf(node)) add(`${at}: type ${type}`, takesType(here, type))
      for (const value of enumOf(node)) add(`${at}: value ${JSON.stringify(value)}`, takesValue(here, value))
      for (const bound of bounds) {
        if (node[bound] !== undefined) {
          add(
            `${at}: ${bound} ${JSON.stringify(node[bound])}`,
            here.some((mine) => mine[bound] === node[bound])
          )
        }
      }
      for (const name of node.required ?? []) add(`${at}: requires ${name}`, here.some((mine) => mine.required?.includes(name)))
      for (const [name, inner] of Object.entries(node.properties ?? {})) {
        walk(`${at}.${name}`, variants(theirs, inner), property(ours, here, name), isRequest)
      }
      if (node.items !== undefined) walk(`${at}[]`, variants(theirs, node.items), itemsOf(ours, here), isRequest)
    }
    if (!isRequest) return
    const required = new Set(there.flatMap((node) => node.required ?? []))
    if (there.some((node) => node.properties !== undefined)) {
      for (const name of here.flatMap((node) => node.required ?? [])) {
        if (!required.has(name)) add(`${at}: ${name} may be left out`, false)
      }
    }
  }

  const contents = (at: string, there: Content, here: Content | undefined, isRequest: boolean): void => {
    for (const [type, { schema }] of Object.entries(there.content ?? {})) {
      const mine = here?.content?.[type]?.schema
      add(`${at} ${type}`, mine !== undefined)
      if (mine !== undefined) walk(`${at} ${type} body`, variants(theirs, schema), variants(ours, mine), isRequest)
    }
  }

  for (const [path, operations] of Object.entries(spec.paths)) {
    for (const [method, there] of Object.entries(operations)) {
      const at = `${method.toUpperCase()} ${path}`
      const here = own.paths[path]?.[method]
      add(at, here !== undefined)
      if (here === undefined) continue
      for (const parameter of there.parameters ?? []) {
        add(
          `${at} ${parameter.in} parameter ${parameter.name}`,
          here.parameters?.some((mine) => mine.name === parameter.name && mine.in === parameter.in) === true
        )
      }
      if (there.requestBody !== undefined) contents(`${at} request`, there.requestBody, here.requestBody, true)
      for (const [status, response] of Object.entries(there.responses)) {
        add(`${at} ${status}`, here.responses[status] !== undefined)
        contents(`${at} ${status}`, response, here.responses[status], false)
      }
    }
  }
  return facts
}
