import { Schema } from "effect"
import assert from "node:assert/strict"
import { type OutputItem, ResponseObject, ResponseStreamEvent } from "../../schema/openai/Responses.ts"

const readEvent = Schema.decodeUnknownSync(ResponseStreamEvent)
const readResponse = Schema.decodeUnknownSync(ResponseObject)

interface Item {
  readonly added: OutputItem
  readonly index: number
  deltas: string
  part: "none" | "open" | "done"
  textDone: boolean
}

export interface CheckedStream {
  readonly events: ReadonlyArray<ResponseStreamEvent>
  readonly response: ResponseObject
}

/** Frames of a body: `event:` and `data:`, and nothing else. */
const frames = (body: string): ReadonlyArray<ResponseStreamEvent> => {
  assert.ok(body.endsWith("\n\n"), "the stream ends in the middle of a frame")
  return body.slice(0, -2).split("\n\n").map((frame) => {
    const [first = "", second = "", ...more] = frame.split("\n")
    assert.deepEqual(more, [], `a frame of more than two lines: ${frame}`)
    assert.ok(first.startsWith("event: "), `no event line: ${frame}`)
    assert.ok(second.startsWith("data: "), `no data line: ${frame}`)
    const data: unknown = JSON.parse(second.slice(6))
    const event = readEvent(data)
    assert.equal(event.type, first.slice(7))
    return event
  })
}

const wholeOf = (item: OutputItem): string => {
  switch (item.type) {
    case "message":
      return item.content[0]?.text ?? ""
    case "reasoning":
      return (item.content ?? item.summary)[0]?.text ?? ""
    case "function_call":
      return item.arguments
    case "custom_tool_call":
      return item.input
  }
}

const deltaTypes: Readonly<Record<string, OutputItem["type"]>> = {
  "response.output_text.delta": "message",
  "response.reasoning_text.delta": "reasoning",
  "response.reasoning_summary_text.delta": "reasoning",
  "response.function_call_arguments.delta": "function_call",
  "response.custom_tool_call_input.delta": "custom_tool_call"
}

const terminal: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", "response.failed"])

/** The state of one stream; each event must be one that may come now. */
class Machine {
  readonly done: Array<OutputItem> = []
  private readonly first: ResponseStreamEvent
  private item: Item | undefined

  constructor(first: ResponseStreamEvent) {
    this.first = first
  }

  take(event: ResponseStreamEvent): void {
    switch (event.type) {
      case "response.in_progress":
        assert.deepEqual(event.response, this.first.response)
        return
      case "response.output_item.added":
        return this.added(event)
      case "response.content_part.added":
      case "response.reasoning_summary_part.added": {
        const item = this.open(event)
        assert.equal(item.part, "none", "a second part")
        item.part = "open"
        this.place(event)
        return
      }
      case "response.content_part.done":
      case "response.reasoning_summary_part.done": {
        const item = this.open(event)
        assert.equal(item.part, "open")
        assert.ok(item.textDone, "a part is done before its text")
        assert.equal(event.part?.["text"], item.deltas)
        item.part = "done"
        this.place(event)
        return
      }
      case "response.output_item.done":
        return this.itemDone(event)
      default: {
        const type = deltaTypes[event.type]
        return type === undefined ? this.textDone(event) : this.delta(event, type)
      }
    }
  }

  over(): void {
    assert.equal(this.item, undefined, "an item is still open")
  }

  /** The item that an event names, which has to be the open one. */
  private open(event: ResponseStreamEvent): Item {
    const { item } = this
    assert.ok(item !== undefined, `${event.type} outside an item`)
    assert.equal(event.output_index, item.index)
    assert.equal(event.item_id, item.added.id)
    return item
  }

  private place(event: ResponseStreamEvent): void {
    if (event.type.includes("summary")) assert.equal(event.summary_index, 0)
    else assert.equal(event.content_index, 0)
  }

  private added({ item, output_index }: ResponseStreamEvent): void {
    assert.equal(this.item, undefined, "an item is added inside another")
    assert.ok(item !== undefined)
    assert.equal(output_index, this.done.length)
    assert.equal(item.status, "in_progress")
    assert.equal(wholeOf(item), "")
    assert.ok(!this.done.some((earlier) => earlier.id === item.id), "an id is used twice")
    this.item = { added: item, index: this.done.length, deltas: "", part: "none", textDone: false }
  }

  private delta(event: ResponseStreamEvent, type: OutputItem["type"]): void {
    const item = this.open(event)
    assert.equal(item.added.type, type)
    assert.ok(!item.textDone, "a delta after its text is done")
    if (type === "message" || type === "reasoning") {
      assert.equal(item.part, "open")
      this.place(event)
    }
    assert.ok(event.delta !== undefined && event.delta !== "", "an empty delta")
    item.deltas += event.delta
  }

  private textDone(event: ResponseStreamEvent): void {
    assert.match(event.type, /\.done$/)
    const item = this.open(event)
    assert.ok(!item.textDone)
    item.textDone = true
    const whole = event.text ?? event.arguments ?? event.input
    assert.equal(whole, item.deltas)
    if (event.type === "response.function_call_arguments.done" && item.added.type === "function_call") {
      assert.equal(event.name, item.added.name)
    }
  }

  private itemDone({ item, output_index }: ResponseStreamEvent): void {
    const open = this.item
    assert.ok(open !== undefined && item !== undefined)
    assert.equal(output_index, open.index)
    assert.equal(item.id, open.added.id)
    assert.equal(item.type, open.added.type)
    assert.ok(open.textDone)
    if (item.type === "message" || item.type === "reasoning") assert.equal(open.part, "done")
    assert.equal(wholeOf(item), open.deltas)
    assert.notEqual(item.status, "in_progress")
    if (item.type === "function_call" || item.type === "custom_tool_call") assert.notEqual(item.call_id, "")
    this.done.push(item)
    this.item = undefined
  }
}

/** Checks a whole Responses stream against the grammar of OpenAI's events; throws at the first deviation. */
export const checkResponsesStream = (body: string): CheckedStream => checkResponseEvents(frames(body))

/** Checks the events of a stream, which may be the messages of a socket. */
export const checkResponseEvents = (given: ReadonlyArray<unknown>): CheckedStream => {
  const events = given.map((event) => readEvent(event))
  const [first, second] = events
  assert.equal(first?.type, "response.created")
  assert.equal(second?.type, "response.in_progress")
  events.forEach((event, index) => assert.equal(event.sequence_number, index))
  const machine = new Machine(first)
  for (const event of events.slice(1, -1)) {
    assert.ok(!terminal.has(event.type), "events after the terminal one")
    machine.take(event)
  }
  const last = events.at(-1)
  assert.ok(last !== undefined && terminal.has(last.type), `the stream ends with ${last?.type}`)
  const response = readResponse(last.response)
  assert.equal(response.id, first.response?.id)
  assert.equal(`response.${response.status}`, last.type)
  if (last.type === "response.failed") {
    assert.equal(response.error?.code, "server_error")
    return { events, response }
  }
  machine.over()
  assert.deepEqual(response.output, machine.done)
  const { usage } = response
  assert.ok(usage !== null)
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens)
  assert.equal(response.incomplete_details?.reason, last.type === "response.incomplete" ? "max_output_tokens" : undefined)
  return { events, response }
}
