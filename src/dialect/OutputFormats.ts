import { Result, Schema } from "effect"
import { type FormatFields, type ResponseFormat, StructuralTag } from "../../schema/openai/FormatFields.ts"
import { InvalidRequest, UnsupportedFeature } from "../domain/Errors.ts"
import type { OutputFormat } from "../domain/OutputFormat.ts"
import { isRecord } from "./WireRequest.ts"

type Refusal = InvalidRequest | UnsupportedFeature
type Decoded = Result.Result<OutputFormat | undefined, Refusal>

const isStructuralTag = Schema.is(StructuralTag)

const invalid = (field: string, message: string) => Result.fail(new InvalidRequest({ message: `${field}: ${message}`, field }))

/** A schema, as an object or as its JSON text. */
const schemaFormat = (schema: unknown, field: string): Decoded => {
  if (typeof schema !== "string") return Result.succeed({ _tag: "JsonSchema", schema, field })
  try {
    return Result.succeed({ _tag: "JsonSchema", schema: JSON.parse(schema), field })
  } catch {
    return invalid(field, "Expected a JSON Schema, or its JSON text")
  }
}

/** vLLM's `structural_tag`: the JSON text of what `response_format` has beside its type, or that itself. */
const structuralTag = (value: unknown, field: string): Decoded => {
  let tag = value
  if (typeof value === "string") {
    try {
      tag = JSON.parse(value)
    } catch {
      return invalid(field, "Expected the JSON text of a structural tag")
    }
  }
  if (isRecord(tag) && tag["format"] !== undefined) {
    const place = `${field}.format`
    return Result.fail(
      new UnsupportedFeature({ message: `${place}: not supported by this version; structures and triggers are`, field: place })
    )
  }
  return isStructuralTag(tag) ? tagsFormat(tag, field) : invalid(field, "Expected structures and triggers")
}

/** GBNF defines its rules with `::=`, which Lark does not know. */
const grammarFormat = (text: string, field: string): OutputFormat => ({
  _tag: "Grammar",
  syntax: text.includes("::=") ? "gbnf" : "lark",
  text,
  field
})

const tagsFormat = (
  { structures, triggers }: Pick<ResponseFormat, "structures" | "triggers">,
  field: string
): Decoded => {
  if (structures === undefined) return invalid(`${field}.structures`, "Missing key")
  if (triggers === undefined) return invalid(`${field}.triggers`, "Missing key")
  return Result.succeed({
    _tag: "Tags",
    triggers,
    tags: structures.map(({ begin, end, schema }, index) => ({
      begin,
      end,
      schema: schema ?? true,
      field: `${field}.structures.${index}.schema`
    })),
    field
  })
}

/** `response_format`, and the `format` of the other dialects: `inline` where a schema stands beside the type. */
export const responseFormat = (format: ResponseFormat | null | undefined, field: string, inline: boolean): Decoded => {
  switch (format?.type) {
    case undefined:
    case "text":
      return Result.succeed(undefined)
    case "json_object":
      return format.schema === undefined || inline
        ? Result.succeed({ _tag: "JsonObject", field })
        : schemaFormat(format.schema, `${field}.schema`)
    case "json_schema": {
      const nested = inline ? undefined : format.json_schema?.schema
      if (nested !== undefined) return schemaFormat(nested, `${field}.json_schema.schema`)
      if (format.schema !== undefined) return schemaFormat(format.schema, `${field}.schema`)
      return invalid(inline ? `${field}.schema` : `${field}.json_schema.schema`, "Missing key")
    }
    case "structural_tag":
      return tagsFormat(format, field)
    default:
      return Result.fail(
        new UnsupportedFeature({
          message: `${field}.type: Expected one of text, json_object, json_schema, structural_tag`,
          field: `${field}.type`
        })
      )
  }
}

/** What vLLM's and llama-server's fields and the `response_format` ask for, which may be one thing only. */
export const outputFormat = (body: FormatFields & { readonly response_format?: ResponseFormat }): Decoded =>
  Result.gen(function*() {
    const asked: Array<OutputFormat> = []
    const add = (format: OutputFormat | undefined): void => {
      if (format !== undefined) asked.push(format)
    }
    add(yield* responseFormat(body.response_format, "response_format", false))
    if (body.guided_json !== undefined) add(yield* schemaFormat(body.guided_json, "guided_json"))
    if (body.json_schema !== undefined) add(yield* schemaFormat(body.json_schema, "json_schema"))
    if (body.guided_regex !== undefined) add({ _tag: "Regex", pattern: body.guided_regex, field: "guided_regex" })
    if (body.guided_choice !== undefined) add({ _tag: "Choice", choices: body.guided_choice, field: "guided_choice" })
    if (body.guided_grammar !== undefined) add(grammarFormat(body.guided_grammar, "guided_grammar"))
    if (body.grammar !== undefined && body.grammar !== "") add({ _tag: "Grammar", syntax: "gbnf", text: body.grammar, field: "grammar" })
    const { structured_outputs: outputs } = body
    if (outputs !== undefined) {
      const field = "structured_outputs"
      if (outputs.json !== undefined && outputs.json !== null) add(yield* schemaFormat(outputs.json, `${field}.json`))
      if (outputs.json_object === true) add({ _tag: "JsonObject", field: `${field}.json_object` })
      if (typeof outputs.regex === "string") add({ _tag: "Regex", pattern: outputs.regex, field: `${field}.regex` })
      if (outputs.choice !== undefined && outputs.choice !== null) {
        add({ _tag: "Choice", choices: outputs.choice, field: `${field}.choice` })
      }
      if (typeof outputs.grammar === "string") add(grammarFormat(outputs.grammar, `${field}.grammar`))
      if (outputs.structural_tag !== undefined && outputs.structural_tag !== null) {
        add(yield* structuralTag(outputs.structural_tag, `${field}.structural_tag`))
      }
    }
    const [first, second] = asked
    if (first !== undefined && second !== undefined) {
      return yield* invalid(second.field, `cannot be set together with ${first.field}`)
    }
    return first
  })
