import { Schema } from "effect"
import { ChatCompletionRequest } from "../openai/Chat.ts"
import { count } from "../openai/Common.ts"

const ids = Schema.Array(count(0))

export const TokenizeRequest = Schema.Struct({
  model: Schema.optionalKey(Schema.String.annotate({ description: "The id that GET /v1/models shows." })),
  prompt: Schema.optionalKey(Schema.String.annotate({ description: "The text (vLLM's name). BOS is put first where the model wants it." })),
  content: Schema.optionalKey(Schema.String.annotate({ description: "The text (llama-server's name). No BOS is put first." })),
  messages: Schema.optionalKey(ChatCompletionRequest.fields.messages.annotate({ description: "A conversation, for its prompt." })),
  add_special_tokens: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether BOS is put before a text." })),
  add_special: Schema.optionalKey(Schema.Boolean.annotate({ description: "Same as add_special_tokens." })),
  parse_special: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether texts of special tokens stand for them.", default: true })
  ),
  return_token_strs: Schema.optionalKey(Schema.Boolean.annotate({ description: "Give token_strs too.", default: false })),
  with_pieces: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Give each token as {id, piece}; a piece of a character is a list of bytes.", default: false })
  )
}).annotate({
  identifier: "TokenizeRequest",
  description: "One of prompt, content and messages; with messages, the fields of a chat completion that shape its prompt."
})

export const TokenizeResponse = Schema.Struct({
  count: Schema.Int.annotate({ description: "Number of tokens." }),
  max_model_len: Schema.Int.annotate({ description: "Context length in tokens." }),
  tokens: Schema.Array(
    Schema.Union([Schema.Int, Schema.Struct({ id: Schema.Int, piece: Schema.Union([Schema.String, Schema.Array(Schema.Int)]) })])
  ),
  token_strs: Schema.NullOr(Schema.Array(Schema.String))
}).annotate({ identifier: "TokenizeResponse" })
export type TokenizeResponse = typeof TokenizeResponse.Type

export const DetokenizeRequest = Schema.Struct({
  model: Schema.optionalKey(Schema.String.annotate({ description: "The id that GET /v1/models shows." })),
  tokens: ids.annotate({ expected: "a list of token ids", description: "Token ids." })
}).annotate({ identifier: "DetokenizeRequest" })

export const DetokenizeResponse = Schema.Struct({
  prompt: Schema.String.annotate({ description: "The text (vLLM's name)." }),
  content: Schema.String.annotate({ description: "The same (llama-server's name)." })
}).annotate({ identifier: "DetokenizeResponse" })
export type DetokenizeResponse = typeof DetokenizeResponse.Type

export const AppliedTemplate = Schema.Struct({
  prompt: Schema.String.annotate({ description: "The prompt that the chat template makes of the conversation." })
}).annotate({ identifier: "AppliedTemplate" })
export type AppliedTemplate = typeof AppliedTemplate.Type

export const RenderedChat = Schema.Struct({
  prompt: Schema.String.annotate({ description: "The prompt that the chat template makes of the conversation." }),
  prompt_token_ids: Schema.Array(Schema.Int).annotate({ description: "Its tokens." }),
  model: Schema.String
}).annotate({ identifier: "RenderedChat" })
export type RenderedChat = typeof RenderedChat.Type

/** llama-server's description of itself, as far as it is true here. */
export const Props = Schema.Struct({
  default_generation_settings: Schema.Struct({
    n_ctx: Schema.Int.annotate({ description: "Tokens per slot." }),
    params: Schema.Record(Schema.String, Schema.Union([Schema.Finite, Schema.String, Schema.Boolean]))
  }),
  total_slots: Schema.Int,
  model_alias: Schema.String.annotate({ description: "The model's id." }),
  model_path: Schema.String.annotate({ description: "Name of the weights file, without its folder." }),
  modalities: Schema.Struct({ vision: Schema.Boolean, audio: Schema.Boolean }),
  chat_template: Schema.String.annotate({ description: "The model's own, empty where it has none." }),
  bos_token: Schema.String,
  eos_token: Schema.String,
  build_info: Schema.String
}).annotate({ identifier: "Props" })
export type Props = typeof Props.Type
