import { Effect, Exit, Layer, Logger, Schema, Scope } from "effect"
import { HttpServer } from "effect/http"
import { setImmediate } from "node:timers/promises"
import { ChatCompletion } from "../../../schema/openai/Chat.ts"
import { ErrorBody } from "../../../schema/openai/Common.ts"
import { Auth } from "../../../src/auth/Auth.ts"
import { TemplateError } from "../../../src/domain/Errors.ts"
import { ServedModel, type ServedModelValue } from "../../../src/domain/ServedModel.ts"
import { CurrentTenant } from "../../../src/domain/Tenant.ts"
import { layerScripted, type Script, ScriptedEngine } from "../../../src/engine/EngineScripted.ts"
import { Admission, type AdmissionOptions } from "../../../src/generation/Admission.ts"
import { Generation } from "../../../src/generation/Generation.ts"
import { ChatTemplate } from "../../../src/prompt/ChatTemplate.ts"
import { Limits, type LimitsValue } from "../../../src/server/Limits.ts"
import * as Server from "../../../src/server/Server.ts"
import { Settings, type SettingsValue } from "../../../src/Settings.ts"
import { jsonLogger } from "../../../src/telemetry/JsonLogger.ts"
import { Tokenizer } from "../../../src/tokenizer/Tokenizer.ts"

/** Token ids of a text whose tokens are UTF-16 code units. */
export const tokensOf = (text: string): Array<number> => Array.from({ length: text.length }, (_, index) => text.charCodeAt(index))

export const textOf = (tokens: Iterable<number>): string => String.fromCharCode(...tokens)

/** The same, but for texts that are tokens of their own. */
export const tokensWith = (specials: ReadonlyMap<string, number>, text: string): Array<number> => {
  const tokens: Array<number> = []
  for (let at = 0; at < text.length;) {
    const [special, id] = [...specials].find(([own]) => text.startsWith(own, at)) ?? []
    tokens.push(id ?? text.charCodeAt(at))
    at += special?.length ?? 1
  }
  return tokens
}

/** One token per UTF-16 code unit, and those of `specials`; 3 ends a turn. */
export const layerTokenizer = (
  decode: (token: number) => string = (token) => String.fromCharCode(token),
  tokenId: (text: string) => number | undefined = () => undefined,
  onEncode: (tenant: string) => void = () => {},
  specials: ReadonlyMap<string, number> = new Map()
) => {
  const texts = new Map([...specials].map(([text, id]) => [id, text]))
  const textOfToken = (token: number) => texts.get(token) ?? decode(token)
  return Layer.succeed(Tokenizer, {
    encode: (prompt) =>
      Effect.map(CurrentTenant, (tenant) => {
        onEncode(tenant)
        return Int32Array.from(tokensWith(specials, prompt.text))
      }),
    tokenBytes: (token) => Buffer.from(textOfToken(token)),
    decoder: () => ({ push: textOfToken, end: () => "" }),
    endTokens: Int32Array.of(3),
    bos: undefined,
    eos: undefined,
    specialTexts: [...specials.keys()],
    tokenId: (text) => specials.get(text) ?? tokenId(text),
    size: 0x1_0000
  })
}

/** `role:content|` for each message; a message "no template" is refused, and enable_thinking opens a reasoning block. */
export const layerTemplate = Layer.succeed(ChatTemplate, {
  render: ({ messages, templateVariables }) =>
    messages.some((message) => message.content === "no template")
      ? Effect.fail(new TemplateError({ message: "roles must alternate" }))
      : Effect.succeed({
        text: messages.map((message) => `${message.role}:${message.content}|`).join("") +
          (templateVariables["enable_thinking"] === true ? "<think>" : ""),
        untrusted: []
      }),
  startsInReasoning: (prompt) => prompt.text.endsWith("<think>")
})

export const settings: SettingsValue = {
  model: "demo.gguf",
  host: "127.0.0.1",
  port: 0,
  contextLength: undefined,
  slots: 4,
  threads: undefined,
  kvType: "f16",
  cacheRamMib: 0,
  responsesDb: undefined,
  apiKeyFile: undefined,
  apiKey: undefined,
  corsOrigins: [],
  aliases: [],
  sampling: "greedy",
  models: undefined,
  websocket: false,
  stopRepetition: 0,
  greedyToolSyntax: false
}

export const limits: LimitsValue = {
  bodyBytes: 64 * 1024,
  keepAliveMs: 10_000,
  slowReaderMs: 30_000,
  headMs: 1_000,
  headersMs: 10_000,
  requestMs: 120_000,
  headerBytes: 16 * 1024,
  socketMs: 3_600_000,
  drainMs: 10_000
}

export const layerServedModel = (aliases: ReadonlyArray<string> = [], prefixCache = false, more: Partial<ServedModelValue> = {}) =>
  Layer.succeed(ServedModel, {
    id: "demo/model",
    aliases,
    contextLength: 4096,
    weights: "demo.gguf",
    weightsBytes: 1_000_000_000,
    parameters: 2_000_000_000,
    slots: 4,
    cacheRamMib: 16,
    prefixCache,
    ...more
  })

export interface HarnessOptions {
  readonly script: Script
  readonly settings?: Partial<SettingsValue>
  readonly limits?: Partial<LimitsValue>
  readonly admission?: Partial<AdmissionOptions>
  /** Text of an output token; by default the character of that code. */
  readonly decode?: (token: number) => string
  /** Whether the model says that it has one. */
  readonly prefixCache?: boolean
  /** Token of a text, where it is one. */
  readonly tokenId?: (text: string) => number | undefined
  /** Texts that are control tokens. */
  readonly specials?: ReadonlyMap<string, number>
  /** Called with the tenant of every prompt that is encoded. */
  readonly onEncode?: (tenant: string) => void
  readonly served?: Partial<ServedModelValue>
}

export interface Harness {
  readonly url: string
  readonly engine: ScriptedEngine["Service"]
  readonly admission: Admission["Service"]
  /** Stops the server, gracefully. */
  readonly close: Effect.Effect<void>
  /** Lines of the log so far. */
  readonly log: ReadonlyArray<string>
  readonly post: (body: unknown, init?: RequestInit) => Promise<Response>
}

/** A real server on a free port with a scripted engine; it closes with the scope. */
export const harness = (options: HarnessOptions): Effect.Effect<Harness, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const value = { ...settings, ...options.settings }
    const layerSettings = Layer.succeed(Settings, value)
    const bounds = { ...limits, ...options.limits }
    const services = Generation.layer.pipe(
      Layer.provideMerge(
        Layer.mergeAll(
          layerScripted(options.script),
          layerTokenizer(options.decode, options.tokenId, options.onEncode, options.specials),
          layerTemplate,
          layerServedModel(value.aliases, options.prefixCache, options.served),
          Auth.layer,
          Admission.layerOptions({ slots: value.slots, maxWaitingPerTenant: 32, maxWaiting: 256, ...options.admission })
        )
      ),
      Layer.provideMerge(layerSettings)
    )
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
    const app = Server.layer.pipe(
      Layer.provideMerge(services),
      Layer.provide([Layer.succeed(Limits, bounds), Logger.layer([jsonLogger((line) => log.push(line))])])
    )
    const context = yield* Layer.buildWithScope(app, scope)
    return yield* Effect.gen(function*() {
      const address = (yield* HttpServer.HttpServer).address
      const url = `http://127.0.0.1:${"port" in address ? address.port : 0}`
      return {
        url,
        engine: yield* ScriptedEngine,
        admission: yield* Admission,
        log,
        close: Scope.close(scope, Exit.void),
        post: (body: unknown, init?: RequestInit) =>
          fetch(`${url}/v1/chat/completions`, {
            method: "POST",
            body: typeof body === "string" ? body : JSON.stringify(body),
            ...init,
            headers: { "content-type": "application/json", ...init?.headers }
          })
      }
    }).pipe(Effect.provide(context))
  })

/** Events of an SSE body: JSON of each `data:` line, "[DONE]" and comments as they are. */
export const events = (body: string): Array<unknown> =>
  body.split("\n\n").filter((frame) => frame !== "").map((frame) =>
    frame.startsWith("data: {") ? JSON.parse(frame.slice(6)) : frame.startsWith("data: ") ? frame.slice(6) : frame
  )

export const user = (content: string) => [{ role: "user", content }]

/** Resolves when `condition` holds, checked between turns of the event loop. */
export const eventually = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await setImmediate()
}

/** Waits until so many requests are in the queue. */
export const queued = (server: Harness, count: number): Effect.Effect<void> =>
  Effect.gen(function*() {
    while ((yield* server.admission.waiting) !== count) yield* Effect.promise(() => setImmediate())
  })

/** What a client's request gets as its `signal`, and leaves by. */
export const leaving = (): AbortController => new AbortController()

const readAnswer = Schema.decodeUnknownPromise(ChatCompletion)
const readError = Schema.decodeUnknownPromise(ErrorBody)

/** A body that must be an answer. */
export const answerOf = async (response: Promise<Response>): Promise<ChatCompletion> => readAnswer(await (await response).json())

/** A body that must be an error. */
export const errorOf = async (response: Response): Promise<ErrorBody["error"]> => (await readError(await response.json())).error

/** Reads a stream until `enough` of it is there; `rest` is what comes after that, to the end. */
export const readUntil = async (response: Response, enough: (text: string) => boolean) => {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  const read = async (enough: (text: string) => boolean) => {
    let text = ""
    while (!enough(text)) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
    return text
  }
  return { text: await read(enough), reader, rest: () => read(() => false) }
}
