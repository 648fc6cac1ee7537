import * as CodePoints from "../CodePoints.ts"
import * as Ir from "../Ir.ts"
import * as Regular from "../Regular.ts"
import { toNode } from "../RegularNode.ts"
import { without } from "./TextValues.ts"

const space = Regular.star(Regular.characters(CodePoints.among(" \t\r\n")))
const text = Regular.text
const anyOf = (...texts: ReadonlyArray<string>) => Regular.choice(texts.map(text))
const outside = (characters: string) => Regular.characters(CodePoints.complement(CodePoints.among(characters)))

const string = Regular.sequence([
  text("\""),
  Regular.star(Regular.choice([outside("\"\\"), Regular.sequence([text("\\"), Regular.anyCharacter])])),
  text("\"")
])

/** A key with an escape in it may be any key. */
const escapedKey = Regular.sequence([text("\""), Regular.star(outside("\"\\")), text("\\")])

/** What may come before the name of a call. */
const members = Regular.star(
  Regular.sequence([anyOf("\"id\"", "\"type\""), space, text(":"), space, string, space, text(","), space])
)

const json = Regular.sequence([
  text("{"),
  space,
  members,
  Regular.choice([
    Regular.sequence([anyOf("\"name\"", "\"parameters\"", "\"arguments\""), space, text(":")]),
    escapedKey
  ])
])

const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

const python = Regular.sequence([
  text("["),
  space,
  Regular.characters(CodePoints.among(word)),
  Regular.star(Regular.characters(CodePoints.among(`${word}.:/-`))),
  text("(")
])

/** Every beginning of an output that the parser of bare syntaxes may make a call of. */
const begun = Regular.sequence([space, Regular.choice([json, python]), Regular.everything])

/** Answers that do not begin as a call does, and have no tag in them that calls may come after. */
export const bareText = (tag: string): Ir.Node => ({
  kind: "lexeme",
  item: toNode(Regular.and([without(tag), Regular.not(begun)]))
})
