import { Stream } from "effect"
import { HttpServerResponse } from "effect/http"

/** A list whose items are worded when they are sent; each of them is small. */
export class Listed {
  readonly length: number
  readonly item: (index: number) => unknown

  constructor(length: number, item: (index: number) => unknown) {
    this.length = length
    this.item = item
  }
}

/** Answers of more items and text than this are worded in turns of the event loop. */
const largeUnits = 64 * 1024

const unitsPerPiece = 32 * 1024
const itemsPerPiece = 1024

/** Milliseconds that a turn words for. */
const turnMs = 3

/** Without its first and last character: a text without quotes, a list without brackets. */
const inner = (json: string) => json.slice(1, -1)

const isLead = (unit: number) => (unit & 0xfc00) === 0xd800

function* textPieces(text: string): Generator<string> {
  yield "\""
  for (let at = 0; at < text.length;) {
    let end = Math.min(at + unitsPerPiece, text.length)
    if (end < text.length && isLead(text.charCodeAt(end - 1))) end--
    yield inner(JSON.stringify(text.slice(at, end)))
    at = end
  }
  yield "\""
}

function* listPieces(list: Listed): Generator<string> {
  yield "["
  for (let at = 0; at < list.length; at += itemsPerPiece) {
    const items = Array.from({ length: Math.min(itemsPerPiece, list.length - at) }, (_, index) => list.item(at + index))
    yield (at === 0 ? "" : ",") + inner(JSON.stringify(items))
  }
  yield "]"
}

/** An object's JSON text in pieces. Long texts and lists are its own members, not deeper. */
export function* jsonPieces(value: Readonly<Record<string, unknown>>): Generator<string> {
  let before = "{"
  for (const [name, member] of Object.entries(value)) {
    yield `${before}${JSON.stringify(name)}:`
    before = ","
    if (typeof member === "string") yield* textPieces(member)
    else if (member instanceof Listed) yield* listPieces(member)
    else yield JSON.stringify(member)
  }
  yield before === "{" ? "{}" : "}"
}

const unitsOf = (value: Readonly<Record<string, unknown>>): number =>
  Object.values(value).reduce<number>(
    (units, member) => units + (typeof member === "string" || member instanceof Listed ? member.length : 0),
    0
  )

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

async function* inTurns(pieces: Generator<string>): AsyncGenerator<Uint8Array> {
  let step = pieces.next()
  while (step.done !== true) {
    const end = performance.now() + turnMs
    const turn: Array<string> = []
    for (; step.done !== true && performance.now() < end && turn.length < 64; step = pieces.next()) turn.push(step.value)
    yield Buffer.from(turn.join(""))
    await nextTurn()
  }
}

/** A JSON answer, in turns where it is large. */
export const answerJson = (
  value: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse => {
  const options = { contentType: "application/json", headers }
  if (unitsOf(value) <= largeUnits) return HttpServerResponse.text(Array.from(jsonPieces(value)).join(""), options)
  return HttpServerResponse.stream(Stream.fromAsyncIterable(inTurns(jsonPieces(value)), (cause) => cause), options)
}
