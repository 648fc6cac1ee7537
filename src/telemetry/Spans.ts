import { Cause, Clock, Context, Effect, Exit, Option, Tracer } from "effect"
import { type Headers, HttpTraceContext } from "effect/http"

/** Whether spans are exported. While they are not, nothing in this module costs more than asking. */
export const Tracing = Context.Reference<boolean>("mashbox/telemetry/Tracing", { defaultValue: () => false })

type Attributes = Readonly<Record<string, string | number | ReadonlyArray<string> | undefined>>

const setAttributes = (span: Tracer.Span, attributes: Attributes) => {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value)
}

/** Runs an effect in a span of its own. */
export const inSpan = (name: string) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Tracing, (on) => on ? Effect.withSpan(effect, name) : effect)

const startSpan = (
  tracer: Tracer.Tracer,
  name: string,
  kind: Tracer.SpanKind,
  parent: Option.Option<Tracer.AnySpan>,
  startTime: bigint
) =>
  tracer.span({
    name,
    kind,
    parent,
    startTime,
    annotations: Context.empty(),
    links: [],
    root: false,
    sampled: Option.getOrElse(Option.map(parent, (span) => span.sampled), () => true)
  })

/** Exports a span of the past. The times are monotonic milliseconds, as the Effect clock has them. */
export const pastSpan = (name: string, from: number, to: number, attributes: Attributes = {}): Effect.Effect<void> =>
  Effect.flatMap(Tracing, (on) =>
    on
      ? Effect.gen(function*() {
        const clock = yield* Clock.Clock
        const parent = yield* Effect.option(Effect.currentParentSpan)
        const monotonicZero = clock.currentTimeNanosUnsafe() - clock.monotonicTimeNanosUnsafe()
        const nanos = (ms: number) => monotonicZero + BigInt(Math.round(ms * 1e6))
        const span = startSpan(yield* Effect.tracer, name, "internal", parent, nanos(from))
        setAttributes(span, attributes)
        span.end(nanos(to), Exit.void)
      })
      : Effect.void)

/** The span of one request, which joins the trace that the caller's `traceparent` header names. */
export interface ServerSpan {
  /** Makes what an effect does a part of this span. */
  readonly around: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Ends the span; `failure` is the kind of what went wrong in the server. */
  readonly end: (attributes: Attributes, failure: string | undefined) => Effect.Effect<void>
}

const noSpan: ServerSpan = { around: (effect) => effect, end: () => Effect.void }

export const serverSpan = (name: string, headers: Headers.Headers): Effect.Effect<ServerSpan> =>
  Effect.flatMap(Tracing, (on) =>
    on
      ? Effect.gen(function*() {
        const clock = yield* Clock.Clock
        const tracer = yield* Effect.tracer
        const span = startSpan(tracer, name, "server", HttpTraceContext.fromHeaders(headers), clock.currentTimeNanosUnsafe())
        return {
          around: Effect.withParentSpan(span),
          end: (attributes, failure) =>
            Effect.sync(() => {
              setAttributes(span, attributes)
              span.end(clock.currentTimeNanosUnsafe(), failure === undefined ? Exit.void : Exit.fail(failure))
            })
        } satisfies ServerSpan
      })
      : Effect.succeed(noSpan))

/** The kind of a failure alone: messages may quote what a client sent. */
const kindOnly = (exit: Exit.Exit<unknown, unknown>): Exit.Exit<unknown, unknown> => {
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return exit
  const reason = exit.cause.reasons.find((reason) => reason._tag !== "Interrupt")
  const error = reason?._tag === "Fail" ? reason.error : reason?.defect
  return Exit.fail(error instanceof Error ? error.name : typeof error === "string" ? error : typeof error)
}

/** A tracer whose spans tell what kind of failure ended them and nothing else of it. */
export const withoutMessages = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    span: (options) => {
      const span = tracer.span(options)
      const end = span.end.bind(span)
      span.end = (time, exit) => end(time, kindOnly(exit))
      return span
    },
    context: tracer.context
  })
