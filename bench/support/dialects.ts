export interface Dialect {
  readonly name: string
  readonly path: string
  readonly body: (maxTokens: number, stream: boolean) => object
  /** A body of about this many bytes of history, as a long session's client sends it. */
  readonly large: (bytes: number) => object
}

const question = "Tell me a story about a shy dragon."
const paragraph = "The dragon looked at the sea, and the boats came back with fish and news from the other shore. ".repeat(40)

const turns = (bytes: number) =>
  Array.from({ length: 2 * Math.ceil(bytes / paragraph.length / 2) - 1 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `${index} ${paragraph}`
  }))

export const dialects: ReadonlyArray<Dialect> = [
  {
    name: "Chat",
    path: "/v1/chat/completions",
    body: (max_tokens, stream) => ({ messages: [{ role: "user", content: question }], max_tokens, stream }),
    large: (bytes) => ({ messages: turns(bytes), max_tokens: 1 })
  },
  {
    name: "Completions",
    path: "/v1/completions",
    body: (max_tokens, stream) => ({ prompt: question, max_tokens, stream }),
    large: (bytes) => ({ prompt: paragraph.repeat(Math.ceil(bytes / paragraph.length)), max_tokens: 1 })
  },
  {
    name: "Responses",
    path: "/v1/responses",
    body: (max_output_tokens, stream) => ({ input: question, max_output_tokens, stream }),
    large: (bytes) => ({ input: turns(bytes), max_output_tokens: 16 })
  },
  {
    name: "Messages",
    path: "/v1/messages",
    body: (max_tokens, stream) => ({ model: "mashbox-demo", messages: [{ role: "user", content: question }], max_tokens, stream }),
    large: (bytes) => ({ model: "mashbox-demo", messages: turns(bytes), max_tokens: 1 })
  }
]

/** A large prompt on its way through a route that need not generate. */
export interface LargePrompt {
  readonly name: string
  readonly path: string
  readonly body: object
}

/** Prompts of about this many bytes: on every route that renders or encodes, and of shapes that are bad for templates and tokenizers. */
export const largePrompts = (bytes: number): ReadonlyArray<LargePrompt> => {
  const text = paragraph.repeat(Math.ceil(bytes / paragraph.length))
  const messages = turns(bytes)
  const hostile = (name: string, unit: string) => ({
    name: `one message of ${name}`,
    path: "/v1/chat/completions",
    body: { messages: [{ role: "user", content: unit.repeat(Math.floor(bytes / Buffer.byteLength(unit))) }], max_tokens: 1 }
  })
  return [
    ...dialects.map(({ large, name, path }) => ({ name, path, body: large(bytes) })),
    { name: "count_tokens", path: "/v1/messages/count_tokens", body: { model: "mashbox-demo", messages } },
    { name: "input_tokens", path: "/v1/responses/input_tokens", body: { input: messages } },
    { name: "/tokenize", path: "/tokenize", body: { content: text, with_pieces: true } },
    { name: "/apply-template", path: "/apply-template", body: { messages } },
    { name: "chat render", path: "/v1/chat/completions/render", body: { messages } },
    {
      name: "token ids",
      path: "/v1/completions",
      body: { prompt: Array.from({ length: Math.floor(bytes / 5) }, (_, index) => 1000 + index % 3000), max_tokens: 1 }
    },
    hostile("one letter", "a"),
    hostile("spaces", " "),
    hostile("combining marks", "\u0301"),
    hostile("Han without punctuation", "\u4e2d"),
    hostile("special tokens", "<|im_end|>")
  ]
}
