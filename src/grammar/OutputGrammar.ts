import type { OutputFormat } from "../domain/OutputFormat.ts"
import * as Gbnf from "./Gbnf.ts"
import type { GrammarBuilder } from "./GrammarBuilder.ts"
import { GrammarError } from "./GrammarError.ts"
import * as Ir from "./Ir.ts"
import * as JsonSchema from "./JsonSchema.ts"
import * as Lark from "./Lark.ts"
import * as Pattern from "./Pattern.ts"
import { toNode } from "./RegularNode.ts"

type Tags = Extract<OutputFormat, { readonly _tag: "Tags" }>

/** Alternatives of a choice list. */
const mostChoices = 20_000

/** Triggers times tags: each trigger is looked for in each tag. */
const mostPairs = 250_000

/** Tags in one answer. */
const mostTags = 64

/**
 * What an answer in this format is. The paths of errors are those of the request.
 *
 * @throws GrammarError
 */
export const formatNode = (builder: GrammarBuilder, format: OutputFormat): Ir.Node => {
  switch (format._tag) {
    case "JsonObject":
      return JsonSchema.compileInto(builder, { type: "object" })
    case "JsonSchema":
      return within(format.field, () => JsonSchema.compileInto(builder, format.schema))
    case "Regex":
      return within(format.field, () => ({ kind: "lexeme", item: toNode(expression(format.pattern)) }))
    case "Choice":
      return choices(format.choices, format.field)
    case "Grammar":
      return within(format.field, () => (format.syntax === "gbnf" ? Gbnf : Lark).compileInto(builder, format.text))
    case "Tags":
      return tags(builder, format)
  }
}

const expression = (pattern: string) =>
  Pattern.whole(pattern, { dialect: "ecma" }, (reason, message, offset) => {
    throw new GrammarError({ reason, message: `${message} (character ${offset + 1} of the expression)`, path: "" })
  })

const refuse = (field: string, message: string): never => {
  throw new GrammarError({ reason: "Invalid", message: `${field}: ${message}`, path: field })
}

/** Errors of a schema or grammar that stands in a field of the request. */
const within = <A>(field: string, compile: () => A): A => {
  try {
    return compile()
  } catch (error) {
    if (!(error instanceof GrammarError)) throw error
    const { column, line, message, path, reason } = error
    const place = path === "" ? field : `${field}.${path}`
    const told = path !== "" && message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message
    throw new GrammarError({
      reason,
      message: `${place}: ${told}`,
      path: place,
      ...(line === undefined ? {} : { line }),
      ...(column === undefined ? {} : { column })
    })
  }
}

const choices = (texts: ReadonlyArray<string>, field: string): Ir.Node => {
  if (texts.length === 0) refuse(field, "Expected at least one choice")
  if (texts.length > mostChoices) refuse(field, `Expected at most ${mostChoices} choices`)
  return { kind: "choice", items: [...new Set(texts)].map((text) => Ir.text(text.toWellFormed())) }
}

/** Free text; after a trigger, the rest of a tag that begins with it. */
const tags = (builder: GrammarBuilder, { field, tags: all, triggers }: Tags): Ir.Node => {
  if (triggers.length === 0 || triggers.includes("")) refuse(`${field}.triggers`, "Expected at least one text, none of them empty")
  if (all.length * triggers.length > mostPairs) {
    throw new GrammarError({ reason: "TooLarge", message: `${field}: too many triggers and tags to be enforced`, path: field })
  }
  const begun = triggers.flatMap((trigger) => {
    const rests = all.filter(({ begin }) => begin.startsWith(trigger)).map(({ begin, end, field: place, schema }) =>
      Ir.sequence(Ir.text(begin.slice(trigger.length)), within(place, () => JsonSchema.compileInto(builder, schema)), Ir.text(end))
    )
    if (rests.length === 0) refuse(`${field}.triggers`, "Expected each trigger to begin a tag")
    return [
      Ir.sequence({ kind: "free", until: [trigger], except: triggers.filter((other) => !trigger.includes(other)) }, Ir.choice(...rests))
    ]
  })
  const lost = all.findIndex(({ begin }) => !triggers.some((trigger) => begin.startsWith(trigger)))
  if (lost >= 0) refuse(`${field}.structures.${lost}.begin`, "Expected it to begin with one of the triggers")
  return Ir.sequence(Ir.repeat(Ir.choice(...begun), 0, mostTags), { kind: "free", until: [], except: triggers })
}
