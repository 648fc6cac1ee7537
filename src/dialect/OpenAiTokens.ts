import type { TokenLogprob } from "../../schema/openai/TokenFields.ts"
import { UnsupportedFeature } from "../domain/Errors.ts"
import type { TokenOptions } from "../domain/GenerationRequest.ts"
import type { ScoredToken, TokenLogprobs } from "../domain/Logprobs.ts"
import type { Finish } from "../domain/OutputEvent.ts"
import { ignoredWithin, type WireObject } from "./WireRequest.ts"

/** The decoded `tokenFields` of `schema/openai/TokenFields.ts`. */
interface TokenFields {
  readonly min_tokens?: number
  readonly ignore_eos?: boolean
  readonly stop_token_ids?: ReadonlyArray<number>
  readonly include_stop_str_in_output?: boolean
  readonly skip_special_tokens?: boolean
  readonly return_token_ids?: boolean
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean | null; readonly continuous_usage_stats?: boolean | null }
}

/** Whether every chunk of a stream tells its usage: vLLM's option has no meaning without the usage at the end. */
export const continuousUsage = ({ stream, stream_options: options }: TokenFields): boolean =>
  stream === true && options?.include_usage === true && options.continuous_usage_stats === true

/** Paths of the stream options that change nothing. */
export const ignoredStreamOptions = (wire: WireObject, fields: TokenFields): ReadonlyArray<string> =>
  ignoredWithin(wire, "stream_options", new Set(["include_usage", ...(continuousUsage(fields) ? ["continuous_usage_stats"] : [])]))

/** What a request says about single tokens; undefined where it says nothing. `topLogprobs`: as its dialect asks for log probabilities. */
export const tokenOptions = (fields: TokenFields, topLogprobs: number | undefined): TokenOptions | undefined => {
  const options: TokenOptions = {
    ...(topLogprobs === undefined ? {} : { topLogprobs }),
    ...(fields.min_tokens === undefined ? {} : { minTokens: fields.min_tokens }),
    ...(fields.ignore_eos === undefined ? {} : { ignoreEnd: fields.ignore_eos }),
    ...(fields.stop_token_ids === undefined ? {} : { stopTokens: fields.stop_token_ids }),
    ...(fields.include_stop_str_in_output === undefined ? {} : { includeStop: fields.include_stop_str_in_output }),
    ...(fields.skip_special_tokens === undefined ? {} : { showSpecial: !fields.skip_special_tokens }),
    ...(continuousUsage(fields) ? { countDeltas: true } : {}),
    ...(fields.return_token_ids === undefined ? {} : { returnTokens: fields.return_token_ids })
  }
  return Object.keys(options).length === 0 ? undefined : options
}

/** Fields of vLLM and llama-server that promise something about the answer which would not hold if they were ignored. */
const refusedFields: Readonly<Record<string, string>> = {
  truncate_prompt_tokens: "truncating prompts",
  prompt_logprobs: "log probabilities of the prompt",
  use_beam_search: "beam search",
  prompt_embeds: "embeddings as a prompt"
}

/** The first field of the body that cannot be ignored and is not supported on any route. */
export const refusedField = ({ fields }: WireObject): UnsupportedFeature | undefined => {
  const field = Object.keys(fields).find((name) => Object.hasOwn(refusedFields, name) && fields[name] !== false)
  return field === undefined
    ? undefined
    : new UnsupportedFeature({ message: `${field}: ${refusedFields[field]} is not supported by this version`, field })
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The text that bytes are, where they are whole characters. */
const wholeText = (bytes: Uint8Array): string | undefined => {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

/** How a token is worded: what does not change from one place where it stands to the next. */
interface Worded {
  /** Its text; bytes that are no whole characters are written `\xNN` each. */
  readonly text: string
  /** The same with the mark that the Completions API puts before such bytes. */
  readonly marked: string
  /** JSON of the members `token` and `bytes`. */
  readonly members: string
  /** Characters that begin in it. */
  readonly characters: number
  /** It goes on with a character that an earlier token began. */
  readonly continues: boolean
}

/** A tokenizer gives the same bytes for the same token every time, so that each is worded once. */
const worded = new WeakMap<Uint8Array, Worded>()

const word = (bytes: Uint8Array): Worded => {
  const known = worded.get(bytes)
  if (known !== undefined) return known
  const whole = wholeText(bytes)
  const text = whole ?? Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")
  const isContinuation = (byte: number) => (byte & 0xc0) === 0x80
  const own: Worded = {
    text,
    marked: whole ?? `bytes:${text}`,
    members: `"token":${JSON.stringify(text)},"bytes":[${bytes.join(",")}]`,
    characters: bytes.reduce((count, byte) => isContinuation(byte) ? count : count + 1, 0),
    continues: bytes[0] !== undefined && isContinuation(bytes[0])
  }
  worded.set(bytes, own)
  return own
}

/** JSON has no infinity; OpenAI's own stand-in for it. */
const finite = (logprob: number): number => Math.max(logprob, -9999)

const scored = ({ bytes, logprob }: ScoredToken) => ({ token: word(bytes).text, bytes: Array.from(bytes), logprob: finite(logprob) })

/** Log probabilities as Chat Completions and Responses word them. */
export const wireLogprobs = (logprobs: ReadonlyArray<TokenLogprobs>): ReadonlyArray<TokenLogprob> =>
  logprobs.map((token) => ({ ...scored(token), top_logprobs: token.top.map(scored) }))

const scoredJson = ({ bytes, logprob }: ScoredToken): string => `{${word(bytes).members},"logprob":${finite(logprob)}`

/** JSON of {@link wireLogprobs}, for streams. */
export const logprobsJson = (logprobs: ReadonlyArray<TokenLogprobs>): string => {
  let json = ""
  for (const token of logprobs) {
    let top = ""
    for (const own of token.top) top += `${top === "" ? "" : ","}${scoredJson(own)}}`
    json += `${json === "" ? "" : ","}${scoredJson(token)},"top_logprobs":[${top}]}`
  }
  return `[${json}]`
}

/** Log probabilities as the Completions API words them, and where each token begins in its choice's text. */
export class CompletionsLogprobs {
  private readonly alternatives: boolean
  /** Unicode characters that have begun. */
  private begun = 0

  /** `alternatives`: whether any were asked for. */
  constructor(alternatives: boolean) {
    this.alternatives = alternatives
  }

  push(logprobs: ReadonlyArray<TokenLogprobs>) {
    return {
      tokens: logprobs.map(({ bytes }) => word(bytes).marked),
      token_logprobs: logprobs.map(({ logprob }) => finite(logprob)),
      top_logprobs: this.alternatives ? logprobs.map(alternativesOf) : null,
      text_offset: logprobs.map(({ bytes }) => {
        const { characters, continues } = word(bytes)
        const offset = continues ? Math.max(this.begun - 1, 0) : this.begun
        this.begun += characters
        return offset
      })
    }
  }
}

const alternativesOf = (token: TokenLogprobs): Record<string, number> => {
  const entries: Array<readonly [string, number]> = token.top.map(({ bytes, logprob }) => [word(bytes).marked, finite(logprob)])
  return Object.fromEntries([...entries, [word(token.bytes).marked, finite(token.logprob)]])
}

/** Members of an object, to follow others in JSON text. */
export const members = (object: object): string => {
  const text = JSON.stringify(object).slice(1, -1)
  return text === "" ? "" : `,${text}`
}

/** vLLM's field of an answer, where token ids were asked for. */
export const promptTokens = (finish: Finish | undefined) => finish?.tokens === undefined ? {} : { prompt_token_ids: finish.tokens.prompt }

/** vLLM's extra fields of a finished choice: what stopped it, and its token ids where they were asked for. */
export const choiceExtras = ({ repeated, stopString, stopToken, tokens }: Finish) => {
  const reason = repeated === true ? "repetition" : stopString ?? stopToken
  return {
    ...(reason === undefined ? {} : { stop_reason: reason }),
    ...(tokens === undefined ? {} : { token_ids: tokens.output })
  }
}
