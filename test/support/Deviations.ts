/** Where the server does other than a document says, more of it or less. */
export interface Deviation {
  /** The facts it is about. */
  readonly facts: RegExp
  readonly reason: string
  /** `file > name` of the test under `test/unit` that shows what happens instead. */
  readonly proof: string
}

const chat = "POST \\/v1\\/chat\\/completions"

/** From `mashbox-openapi-0.1.13.json`. */
export const openApiDeviations: ReadonlyArray<Deviation> = [
  {
    facts: new RegExp(`^${chat} request .*tool_calls\\[\\](: requires (id|type)|\\.function: requires arguments)$`),
    reason: "Superset: earlier calls of clients that leave these out are taken too.",
    proof: "dialect/OpenAiChat.test.ts > of earlier turns come in every form that clients send"
  },
  {
    facts: new RegExp(`^${chat} request .*\\.tools\\[\\](: requires function|\\.function: requires name)$`),
    reason: "Superset: flat tools, and tools of other types, which have no function, are taken; a function without a name is still a 400.",
    proof: "dialect/OpenAiChat.test.ts > take functions without parameters, flat ones, and none at all"
  },
  {
    facts: new RegExp(`^${chat} request .*\\.chat_template_kwargs\\.enable_thinking$`),
    reason: "Superset: the field takes every variable of a template, this one among them.",
    proof: "dialect/OpenAiChat.test.ts > turns every way to ask for thinking into template variables"
  },
  {
    facts: /\.merge: default true$/,
    reason: "Accepted and ignored, with any value: every request joins the running batch.",
    proof: "schema/Conformance.test.ts > merge is ignored by its name on every route that has it"
  },
  {
    facts: /^POST \/v1\/chat\/completions request .*\.n: value 1$/,
    reason: "Superset: any number of choices, up to the slots.",
    proof: "server/ChatTools.test.ts > have seeds of their own, one prompt and the sum of their tokens"
  },
  {
    facts: /^POST \/v1\/completions request .*\.n: value 1$/,
    reason: "Superset: any number of choices, up to the slots.",
    proof: "server/Completions.test.ts > gives the best of several by their mean log probability, and counts all"
  },
  {
    facts: /^POST \/v1\/(messages|responses) request .*\.n: value 1$/,
    reason: "The document allows the integer; any other than 1 is refused as unsupported, by its name.",
    proof: "schema/Conformance.test.ts > n other than 1 is refused where an answer is one"
  },
  {
    facts: /^POST \/v1\/messages request .*\.thinking: type may be left out$/,
    reason: "Anthropic's own API requires the type; without it the field says neither on nor off, which is a 400 by its name.",
    proof: "schema/Conformance.test.ts > thinking without a type is refused by its name"
  },
  {
    facts: /^POST \/v1\/messages request .*\.tools\[\]: requires name$/,
    reason: "Superset: server tools are ignored, whatever they have; a client tool without a name is still a 400.",
    proof: "dialect/AnthropicMessages.test.ts > lists server tools as ignored"
  },
  {
    facts: /^POST \/v1\/responses request .*\.parallel_tool_calls: default false$/,
    reason: "OpenAI's own default is true; false ends the answer with its first call.",
    proof: "server/Responses.test.ts > answers with a whole response object"
  }
]

/** From `dflash-server-api.md`. */
export const dflashDeviations: ReadonlyArray<Deviation> = [
  {
    facts: /\.(max_tokens|max_output_tokens|max_completion_tokens): default 4096$/,
    reason: "An answer may go on up to the end of the context, as the OpenAPI document says.",
    proof: "server/Chat.test.ts > clamps max_tokens to the room left and refuses a prompt without room"
  },
  {
    facts: /\.seed: default 0$/,
    reason: "A request without a seed gets a random one, as the OpenAPI document says.",
    proof: "dialect/OpenAiChat.test.ts > takes signed seeds and draws one for -1"
  },
  {
    facts: /\.rep_pen: default 1$/,
    reason: "An alias has no default of its own: without both names the penalty is 1.",
    proof: "dialect/OpenAiChat.test.ts > applies every default"
  },
  {
    facts: /^POST \/v1\/messages request\.tool_choice: type string$/,
    reason: "Anthropic's own API takes an object only; a string is a 400 by its name.",
    proof: "schema/Conformance.test.ts > a string is no tool_choice of Messages"
  },
  {
    facts: /^POST \/v1\/chat\/completions response id: chatcmpl_$/,
    reason: "OpenAI's own ids begin with chatcmpl-.",
    proof: "schema/Conformance.test.ts > ids begin with chatcmpl-"
  }
]

/** What each row of a feature, and each bullet, comes to here: the test that shows it, and where we differ, how. Keys are beginnings of rows. */
export const dflashFeatures: Readonly<Record<string, Omit<Deviation, "facts" | "reason"> & { readonly reason?: string }>> = {
  "Sampling Chain > Penalties are still applied": { proof: "server/Chat.test.ts > hands every sampling field to the engine" },
  "Sampling Chain > Argmax is used": { proof: "dialect/OpenAiChat.test.ts > applies every default" },
  "Sampling Chain > Speculative decode": {
    proof: "dialect/OpenAiChat.test.ts > applies every default",
    reason: "This engine has no speculative decoding; answers are those of plain decoding."
  },
  "Streaming > OpenAI format": {
    proof: "server/Chat.test.ts > sends the role, the deltas, the finish, the usage and [DONE], in that order"
  },
  "Streaming > Anthropic format": { proof: "server/Messages.test.ts > streams the same as events" },
  "Streaming > Responses format": { proof: "dialect/OpenAiResponsesStream.test.ts > text" },
  "Streaming > During long prefill": {
    proof: "server/Chat.test.ts > shows that it lives while there is no output",
    reason: "Every 10 s, in each dialect's own way."
  },
  "Features > Multi-turn conversation": { proof: "dialect/OpenAiChat.test.ts > keeps the history of calls, results and thinking" },
  "Features > Tool/function calling": { proof: "server/ChatTools.test.ts > stream their arguments as they are decoded" },
  "Features > Stop sequences": { proof: "server/Messages.test.ts > names the stop sequence" },
  "Features > Thinking/reasoning": { proof: "dialect/OpenAiChat.test.ts > turns every way to ask for thinking into template variables" },
  "Features > Prefix cache (memory)": {
    proof: "schema/Conformance.test.ts > the models list says that nothing is cached yet",
    reason: "Not built yet: the field of the models list is false. Cached tokens of the engine are passed on in usage."
  },
  "Features > Prefix cache (disk)": {
    proof: "schema/Conformance.test.ts > the models list says that nothing is cached yet",
    reason: "Not built yet: the field of the models list is false."
  },
  "Features > PFlash": {
    proof: "server/Chat.test.ts > clamps max_tokens to the room left and refuses a prompt without room",
    reason: "A prompt is never compressed or truncated; one that does not fit is a 400."
  },
  "Features > Client disconnect detection": { proof: "server/Chat.test.ts > frees the slot when the client leaves" },
  "Features > CORS": {
    proof: "server/Refusals.test.ts > get nothing where they are not, or are only alike",
    reason: "Only for the origins of --cors-origin: a page of the web must not reach a server on loopback."
  },
  "Features > Tool memory": {
    proof: "generation/tools/Hermes.test.ts > shows earlier calls in a way that reads back as the same calls",
    reason: "Nothing is kept: a call in the history renders as the model wrote it."
  },
  "TODO > parallel_tool_calls": { proof: "server/ChatTools.test.ts > end the answer after the first where parallel ones are off" },
  "TODO > store": { proof: "server/Responses.test.ts > store: false keeps nothing" },
  "TODO > include": { proof: "dialect/OpenAiResponsesStream.test.ts > reasoning as content or as summary, sealed where asked for" },
  "TODO > service_tier": { proof: "dialect/OpenAiResponses.test.ts > lists what ${JSON.stringify(fields).slice(0, 80)} ignores" },
  "TODO > metadata": {
    proof: "server/Messages.test.ts > come from Claude Code's header, its metadata or the cache key, and are logged as a hash"
  },
  "TODO > stream_options": { proof: "server/Chat.test.ts > leaves the usage chunk out when it was not asked for" },
  "TODO > Input validation": { proof: "server/BadRequests.test.ts > get 400 with the field's path, and reach no engine" },
  "TODO > previous_response_id": { proof: "server/Responses.test.ts > are got, listed, continued and deleted" },
  "TODO > logprobs / top_logprobs": {
    proof: "server/TokenFields.test.ts > come for the answer's tokens, not for reasoning, tags or stop strings"
  },
  "TODO > n (multiple completions)": {
    proof: "server/ChatTools.test.ts > have seeds of their own, one prompt and the sum of their tokens"
  },
  "TODO > logit_bias": { proof: "server/Chat.test.ts > hands every sampling field to the engine" },
  "TODO > user": { proof: "dialect/OpenAiChat.test.ts > are named with their paths, and those that act are not" },
  "TODO > prompt_cache_key": { proof: "server/Edge.test.ts > are in the log as a tag, from headers and from prompt_cache_key" }
}
