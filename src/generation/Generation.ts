import { Clock, Context, Deferred, Effect, Layer, type Scope } from "effect"
import {
  ContextTooLong,
  EngineError,
  type GenerationError,
  InvalidRequest,
  ModelLoading,
  ModelNotFound,
  type TemplateError,
  type UnsupportedFeature
} from "../domain/Errors.ts"
import type { GenerationRequest, Prompt, TokenOptions } from "../domain/GenerationRequest.ts"
import type { Finish, OutputEvent } from "../domain/OutputEvent.ts"
import { isNamed, ServedModel } from "../domain/ServedModel.ts"
import type { PrefillProgress } from "../domain/Usage.ts"
import { Engine, type EngineRequest, type EngineResult } from "../engine/Engine.ts"
import type { EngineLogprobs } from "../engine/Logprobs.ts"
import { GrammarThread, startThread } from "../grammar/GrammarThread.ts"
import { ChatTemplate } from "../prompt/ChatTemplate.ts"
import { LongPrompts } from "../prompt/LongPrompts.ts"
import { type ReasoningState, usualReasoning } from "../prompt/Reasoning.ts"
import { Settings } from "../Settings.ts"
import { inSpan, pastSpan } from "../telemetry/Spans.ts"
import { Tokenizer } from "../tokenizer/Tokenizer.ts"
import { Admission, type Ticket } from "./Admission.ts"
import { CallEnforcement, isPromised, specialTokens } from "./CallEnforcement.ts"
import { OutputPipeline } from "./OutputPipeline.ts"
import * as Prompts from "./Prompts.ts"
import * as ReasoningLimits from "./ReasoningLimits.ts"
import { RepetitionDetector } from "./RepetitionDetector.ts"
import { TokenTrail } from "./TokenTrail.ts"
import { callId } from "./tools/callId.ts"
import { detectSyntax } from "./tools/detectSyntax.ts"
import { syntaxNamed } from "./tools/syntaxes.ts"

/** Where one request's output goes. Called synchronously, once per event; must not throw. */
export interface OutputSink {
  readonly push: (event: OutputEvent) => void
  /** Called as the prompt is prefilled, where the client wants to know. */
  readonly progress?: (progress: PrefillProgress) => void
  /** Forgets everything that was pushed; false when the client has some of it already. */
  readonly reset: () => boolean
}

/** A request that was accepted: each of its choices has a place in the queue. */
export interface AcceptedGeneration {
  readonly promptTokens: number
  /** One for each choice: waits for a slot and generates. Run it once; interrupting it frees the slot. */
  readonly choices: ReadonlyArray<(sink: OutputSink) => Effect.Effect<Finish, EngineError>>
}

/** Seconds after which a client asks again while the model loads. */
const loadingRetryAfter = 2

/** Characters of a call that are held back where no grammar promises that it will be one. */
const unheldPatience = 256

/** One request's life: render, encode, check, queue, generate, and once more when the engine was lost before the client got anything. */
export class Generation extends Context.Service<Generation, {
  /** Everything that can be refused before there is output. Closing the scope cancels the generation. */
  readonly accept: (request: GenerationRequest) => Effect.Effect<AcceptedGeneration, GenerationError, Scope.Scope>
  /** Tokens that a prompt is encoded to; asks nothing of the engine. */
  readonly countTokens: (prompt: Prompt) => Effect.Effect<number, TemplateError | UnsupportedFeature>
  readonly prompts: Prompts.Prompts
  /** What makes first requests as fast as later ones; a few milliseconds of work in short pieces. Run it when the model is ready. */
  readonly warmUp: Effect.Effect<void>
}>()("mashbox/generation/Generation") {
  static readonly layer: Layer.Layer<Generation, never, Admission | ChatTemplate | Engine | ServedModel | Settings | Tokenizer> = Layer
    .effect(
      Generation,
      Effect.gen(function*() {
        const admission = yield* Admission
        const engine = yield* Engine
        const model = yield* ServedModel
        const settings = yield* Settings
        const template = yield* ChatTemplate
        const tokenizer = yield* Tokenizer
        const shown = yield* detectSyntax(template)
        const syntax = (model.toolSyntax === undefined ? undefined : syntaxNamed(model.toolSyntax)) ?? shown.syntax

        const thread = yield* GrammarThread.make(startThread(() => specialTokens(tokenizer)))
        const enforcement = new CallEnforcement({
          syntax: { ...shown, syntax },
          format: template.reasoning,
          tokenizer,
          thread,
          greedySyntax: settings.greedyToolSyntax
        })
        const limits = yield* ReasoningLimits.make(template, tokenizer, syntax)
        const markers = new Set([...syntax.markers, ...(template.reasoning ?? usualReasoning).tags.flat()])
        const prompts = Prompts.make(template, tokenizer, yield* Effect.serviceOption(LongPrompts))

        const accept = Effect.fn("Generation.accept")(function*(request: GenerationRequest) {
          if (request.model !== undefined && !isNamed(model, request.model)) return yield* new ModelNotFound({ model: request.model })
          const status = yield* engine.status
          if (status._tag === "Loading") return yield* new ModelLoading({ retryAfter: loadingRetryAfter })
          if (status._tag === "Failed") return yield* status.error
          const choices = request.choices ?? 1
          if (choices > status.model.slots) {
            return yield* new InvalidRequest({
              message: `n: this server decodes at most ${status.model.slots} choices at a time`,
              field: "n"
            })
          }
          const outside = request.sampling.logitBias.find(([token]) => token >= tokenizer.size)
          if (outside !== undefined) {
            const field = `logit_bias.${outside[0]}`
            return yield* new InvalidRequest({ message: `${field}: the vocabulary has ${tokenizer.size} tokens`, field })
          }
          const options = request.tokenOptions ?? {}
          const badStop = (options.stopTokens ?? []).findIndex((token) => token >= tokenizer.size)
          if (badStop >= 0) {
            const field = `stop_token_ids.${badStop}`
            return yield* new InvalidRequest({ message: `${field}: the vocabulary has ${tokenizer.size} tokens`, field })
          }
          const promptField = request.prompt._tag === "Chat" ? "messages" : "prompt"
          const { contextLength } = status.model
          // Before millions of token ids are looked at.
          if (request.prompt._tag === "Tokens" && request.prompt.tokens.length >= contextLength) {
            return yield* new ContextTooLong({ promptTokens: request.prompt.tokens.length, contextLength, field: promptField })
          }
          if (request.prompt._tag === "Tokens" && prompts.firstUnknown(request.prompt.tokens) >= 0) {
            return yield* new InvalidRequest({ message: `prompt: the vocabulary has ${tokenizer.size} tokens`, field: "prompt" })
          }
          const offered = request.prompt._tag === "Chat" ? request.prompt.conversation.tools : []
          const format = request.outputFormat
          const forms = {
            tools: offered,
            choice: request.toolChoice,
            ...(format === undefined ? {} : { format }),
            continues: request.prompt._tag === "Chat" && request.prompt.conversation.ending === "open_message"
          }
          // Before a prompt is made of megabytes of schemas that are refused anyway.
          const weighed = yield* enforcement.weigh(forms)
          const { reasoning, tokens } = yield* prompts.encode(request.prompt)
          if (tokens.length >= contextLength) {
            const field = promptField === "messages" ? {} : { field: promptField }
            return yield* new ContextTooLong({ promptTokens: tokens.length, contextLength, ...field })
          }
          if (tokens.length === 0) {
            return yield* new InvalidRequest({ message: `${promptField}: the prompt is empty`, field: promptField })
          }
          const room = contextLength - tokens.length
          const maxTokens = Math.min(request.maxTokens ?? room, room)
          const limit = request.prompt._tag === "Chat"
            ? limits({
              conversation: request.prompt.conversation,
              state: reasoning,
              budget: request.reasoningBudget,
              ...(request.toolChoice?.required === true ? { callWithin: maxTokens } : {})
            })
            : undefined
          if (format !== undefined && forms.continues) {
            const { field } = format
            return yield* new InvalidRequest({ message: `${field}: cannot hold an answer that the request begins`, field })
          }
          const grammar = yield* enforcement.grammar({
            ...forms,
            parallel: request.parallelToolCalls ?? true,
            plain: request.prompt._tag !== "Chat",
            reasoning: format === undefined || mayReason(request.prompt, reasoning) ? reasoning : { _tag: "Closed" },
            reasoningLimit: limit?.tokens
          }, weighed)
          const engineRequest = (choice: number): EngineRequest => ({
            tokens,
            maxTokens,
            stopTokens: stopTokens(options, tokenizer.endTokens),
            ...(options.minTokens === undefined ? {} : { minTokens: options.minTokens }),
            ...(options.topLogprobs === undefined ? {} : { topLogprobs: options.topLogprobs }),
            ...(limit?.passage === undefined ? {} : { limit: limit.passage }),
            ...(grammar === undefined ? {} : { grammar, greedySyntax: settings.greedyToolSyntax && format === undefined }),
            sampling: choice === 0
              ? request.sampling
              : { ...request.sampling, seed: (request.sampling.seed + choice) % (Number.MAX_SAFE_INTEGER + 1) }
          })
          const tickets = yield* inSpan("plan")(Effect.replicateEffect(admission.enter(request.tenant, request.session), choices))

          const parses = request.prompt._tag === "Chat" && (offered.length > 0 || syntax.marksReasoning === true)
          const tools = { syntax, offered, newId: callId, parallel: request.parallelToolCalls ?? true }

          const attemptWith = (held: EngineRequest, sink: OutputSink) =>
            generate(
              engine,
              held,
              (emit) =>
                new OutputPipeline({
                  decoder: tokenizer.decoder(
                    options.showSpecial === true || request.prompt._tag !== "Chat" ? options.showSpecial : markers
                  ),
                  reasoning,
                  ...(template.reasoning === undefined ? {} : { format: template.reasoning }),
                  plain: request.prompt._tag !== "Chat",
                  stopStrings: request.stopStrings,
                  ...(options.minTokens === undefined ? {} : { minTokens: options.minTokens }),
                  ...(options.includeStop === undefined ? {} : { includeStop: options.includeStop }),
                  ...(options.topLogprobs === undefined ? {} : { trail: new TokenTrail(tokenizer.tokenBytes) }),
                  ...(parses ? { tools: { ...tools, patience: held.grammar === undefined ? unheldPatience : 0 } } : {}),
                  emit
                }),
              options,
              settings.stopRepetition,
              tokenizer.endTokens,
              sink
            )

          // Calls that nobody was promised may also go unheld, where holding them would cost the engine too much.
          const unheld = (choice: number, sink: OutputSink) => (error: EngineError) => {
            const { grammar, greedySyntax: _, ...free } = engineRequest(choice)
            if (grammar === undefined || (error.code !== "too_complex" && error.subject !== "grammar")) return Effect.fail(error)
            if (format !== undefined) return Effect.fail(inField(error, format.field))
            return !isPromised(offered, request.toolChoice) && sink.reset() ? attemptWith(free, sink) : Effect.fail(error)
          }

          const attempt = (choice: number) => (sink: OutputSink) =>
            Effect.catch(attemptWith(engineRequest(choice), sink), unheld(choice, sink))

          return {
            promptTokens: tokens.length,
            choices: tickets.map((ticket, choice) => (sink: OutputSink) => run(ticket, attempt(choice), sink))
          }
        })

        const countTokens = (prompt: Prompt) => Effect.map(prompts.encode(prompt), ({ tokens }) => tokens.length)

        return { accept, countTokens, prompts, warmUp: enforcement.warmUp }
      })
    )
}

/** What the engine says of a grammar, said of the field that asked for it. */
const inField = ({ code, message, reason }: EngineError, field: string): EngineError =>
  new EngineError({
    reason,
    message: `${field}: ${message.replace(/^grammar: /, "")}`,
    ...(code === undefined ? {} : { code }),
    subject: field
  })

/** Whether reasoning may come before an answer that is held to a format. */
const mayReason = (prompt: Prompt, { _tag }: ReasoningState): boolean =>
  _tag === "Open" || (prompt._tag === "Chat" && prompt.conversation.templateVariables["enable_thinking"] !== false)

const stopTokens = ({ ignoreEnd, stopTokens }: TokenOptions, endTokens: Int32Array): Int32Array => {
  if (stopTokens === undefined && ignoreEnd !== true) return endTokens
  return Int32Array.from(new Set([...ignoreEnd === true ? [] : endTokens, ...stopTokens ?? []]))
}

const run = (
  ticket: Ticket,
  attempt: (sink: OutputSink) => Effect.Effect<Finish, EngineError>,
  sink: OutputSink
): Effect.Effect<Finish, EngineError> =>
  Effect.gen(function*() {
    const queueMs = yield* inSpan("queue")(ticket.ready)
    const finish = yield* attempt(sink).pipe(
      Effect.retry({ times: 1, while: (error) => error.reason === "WorkerLost" && sink.reset() })
    )
    const event: Finish = { ...finish, usage: { ...finish.usage, queueMs: queueMs + finish.usage.queueMs } }
    sink.push(event)
    return event
  }).pipe(Effect.ensuring(ticket.release))

/** What a run did, as spans; a run that ended before its first token has only prefilled. */
const runSpans = (startedAt: number, firstTokenAt: number, endedAt: number, promptTokens: number, generated: number) =>
  Effect.andThen(
    pastSpan("prefill", startedAt, generated === 0 ? endedAt : firstTokenAt, { "gen_ai.usage.input_tokens": promptTokens }),
    generated === 0 ? Effect.void : pastSpan("decode", firstTokenAt, endedAt, { "gen_ai.usage.output_tokens": generated })
  )

/** One run on the engine. A stop string, or a call after which there may be no other, ends it early: the engine's run is interrupted and the counts are our own. */
const generate = (
  engine: Engine["Service"],
  request: EngineRequest,
  makePipeline: (emit: (event: OutputEvent) => void) => OutputPipeline,
  { countDeltas, ignoreEnd, returnTokens }: TokenOptions,
  repetitionLimit: number,
  endTokens: Int32Array,
  sink: OutputSink
): Effect.Effect<Finish, EngineError> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const pipeline = makePipeline((event) => sink.push(countDeltas !== true || event._tag === "Finish" ? event : { ...event, generated }))
    const stopped = Deferred.makeUnsafe<EngineResult>()
    const startedAt = now()
    let firstTokenAt = 0
    let generated = 0
    const repetition = repetitionLimit === 0 || ignoreEnd === true ? undefined : new RepetitionDetector(repetitionLimit)
    let repeated = false
    const output: Array<number> = []
    const onToken = (token: number, logprobs?: EngineLogprobs) => {
      if (pipeline.over || repeated) return
      if (generated++ === 0) firstTokenAt = now()
      if (returnTokens === true) output.push(token)
      repeated = repetition?.push(token) === true
      if (pipeline.push(token, logprobs) || repeated) {
        Deferred.doneUnsafe(
          stopped,
          Effect.succeed({
            reason: pipeline.over ? "stop" : "length",
            promptTokens: request.tokens.length,
            cachedTokens: 0,
            generatedTokens: generated,
            queueMs: 0,
            promptMs: firstTokenAt - startedAt,
            generationMs: now() - firstTokenAt
          })
        )
      }
    }
    const { progress } = sink
    const listener = progress === undefined
      ? { onToken }
      : {
        onToken,
        onProgress: (processed: number, total: number) => progress({ total, processed, elapsedMs: now() - startedAt })
      }
    const result = yield* Effect.raceFirst(engine.generate(request, listener), Deferred.await(stopped)).pipe(
      Effect.ensuring(Effect.suspend(() => runSpans(startedAt, firstTokenAt, now(), request.tokens.length, generated)))
    )
    pipeline.end()
    const stopToken = pipeline.stopString === undefined ? result.stopToken : undefined
    if (stopToken !== undefined) output.push(stopToken)
    return {
      _tag: "Finish",
      reason: pipeline.stopString !== undefined ? "stop" : pipeline.calls > 0 && result.reason === "stop" ? "tool_calls" : result.reason,
      ...(repeated && result.reason === "length" ? { repeated: true as const } : {}),
      ...(pipeline.stopString === undefined ? {} : { stopString: pipeline.stopString }),
      ...(stopToken === undefined || endTokens.includes(stopToken) ? {} : { stopToken }),
      ...(returnTokens === true ? { tokens: { prompt: Array.from(request.tokens), output } } : {}),
      usage: {
        promptTokens: result.promptTokens,
        cachedTokens: result.cachedTokens,
        completionTokens: result.generatedTokens,
        ...(pipeline.reasoningTokens === 0 ? {} : { reasoningTokens: pipeline.reasoningTokens }),
        queueMs: result.queueMs,
        promptMs: result.promptMs,
        generationMs: result.generationMs
      }
    }
  })
