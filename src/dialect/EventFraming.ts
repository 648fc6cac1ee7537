/** How the events of one stream stand on the wire. An event is an object whose first field is its type. */
export interface EventFraming {
  /** Everything up to the fields that follow the type. */
  readonly open: (type: string) => string
  /** What follows the object's closing brace. */
  readonly close: string
}

/** Server-sent events, each named after its type. */
export const serverSentEvents: EventFraming = {
  open: (type) => `event: ${type}\ndata: {"type":"${type}"`,
  close: "\n\n"
}
