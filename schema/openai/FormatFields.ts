import { Schema } from "effect"

const structure = Schema.Struct({
  begin: Schema.String,
  schema: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "JSON Schema of the value between begin and end." }),
  end: Schema.String
})

const structuralTag = {
  structures: Schema.Array(structure).annotate({ description: "structural_tag: what may stand between free text." }),
  triggers: Schema.Array(Schema.String).annotate({
    description: "structural_tag: texts that begin a structure; nothing else is constrained."
  })
}

export const StructuralTag = Schema.Struct(structuralTag)

/** What OpenAI, vLLM and llama-server put in `response_format`. */
export const ResponseFormat = Schema.Struct({
  type: Schema.String,
  json_schema: Schema.optionalKey(
    Schema.Struct({
      name: Schema.optionalKey(Schema.String),
      description: Schema.optionalKey(Schema.NullOr(Schema.String)),
      schema: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "The JSON Schema." }),
      strict: Schema.optionalKey(
        Schema.NullOr(Schema.Boolean).annotate({ description: "Every schema is enforced, so that true and false are the same." })
      )
    })
  ),
  schema: Schema.optionalKey(Schema.Unknown).annotateKey({ description: "The JSON Schema, where llama-server has it." }),
  structures: Schema.optionalKey(structuralTag.structures),
  triggers: Schema.optionalKey(structuralTag.triggers)
})
export type ResponseFormat = typeof ResponseFormat.Type

const formatDescription =
  "{\"type\": \"json_schema\", ...}: the answer is JSON that satisfies the schema, enforced while it is decoded. {\"type\": \"json_object\"}: any JSON object. " +
  "{\"type\": \"structural_tag\"}: vLLM's. Properties come in the order of the schema. A keyword that cannot be enforced gets 400 with its path. " +
  "With thinking on, the constraint begins after it."

export const responseFormatField = { response_format: Schema.optionalKey(ResponseFormat.annotate({ description: formatDescription })) }

const schemaOrText = Schema.Union([Schema.Record(Schema.String, Schema.Unknown), Schema.Boolean, Schema.String]).annotate({
  expected: "a JSON Schema, or its JSON text"
})

const choices = Schema.Array(Schema.String).annotate({ expected: "a list of strings" })

/** Fields of vLLM and llama-server that hold the output to a form; one at a time. */
export const formatFields = {
  guided_json: Schema.optionalKey(schemaOrText.annotate({ description: "The output is JSON that satisfies this schema (vLLM's name)." })),
  guided_regex: Schema.optionalKey(
    Schema.String.annotate({ description: "The whole output matches this regular expression (ECMA-262; vLLM's name)." })
  ),
  guided_choice: Schema.optionalKey(choices.annotate({ description: "The output is one of these (vLLM's name)." })),
  guided_grammar: Schema.optionalKey(
    Schema.String.annotate({
      description: "The output is in the language of this grammar: GBNF where it has ::=, else Lark (vLLM's name)."
    })
  ),
  structured_outputs: Schema.optionalKey(
    Schema.Struct({
      json: Schema.optionalKey(Schema.NullOr(schemaOrText)),
      json_object: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
      regex: Schema.optionalKey(Schema.NullOr(Schema.String)),
      choice: Schema.optionalKey(Schema.NullOr(choices)),
      grammar: Schema.optionalKey(Schema.NullOr(Schema.String)),
      structural_tag: Schema.optionalKey(Schema.Unknown).annotateKey({
        description: "structures and triggers, as an object or its JSON text; one with a format gets 400 naming it."
      })
    }).annotate({ description: "The same under vLLM's newer name; one of json, json_object, regex, choice, grammar and structural_tag." })
  ),
  grammar: Schema.optionalKey(
    Schema.String.annotate({ description: "The output is in the language of this GBNF grammar (llama-server's name)." })
  ),
  json_schema: Schema.optionalKey(
    schemaOrText.annotate({ description: "The output is JSON that satisfies this schema (llama-server's name)." })
  )
}

const formatStruct = Schema.Struct(formatFields)
export type FormatFields = typeof formatStruct.Type
