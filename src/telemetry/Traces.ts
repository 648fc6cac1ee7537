import { Effect, Layer, Tracer } from "effect"
import { HttpMiddleware } from "effect/http"
import { Tracing, withoutMessages } from "./Spans.ts"

/**
 * Exports traces over OTLP/HTTP where OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set; otherwise nothing is loaded. The
 * exporter reads OpenTelemetry's other variables itself: headers, timeouts, the sampler, the service name.
 */
export const layer: Layer.Layer<never> = Layer.unwrap(Effect.promise(async () => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_SERVICE_NAME } = process.env
  if (!OTEL_EXPORTER_OTLP_ENDPOINT && !OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) return Layer.empty
  const [NodeSdk, { OTLPTraceExporter }, { BatchSpanProcessor }] = await Promise.all([
    import("@effect/opentelemetry/NodeSdk"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/sdk-trace-base")
  ])
  const exporter = NodeSdk.layer(() => ({
    resource: { serviceName: OTEL_SERVICE_NAME ?? "mashbox" },
    spanProcessor: new BatchSpanProcessor(new OTLPTraceExporter())
  }))
  const tracer = Layer.effect(Tracer.Tracer, Effect.map(Effect.tracer, withoutMessages)).pipe(Layer.provideMerge(exporter))
  return Layer.mergeAll(
    tracer,
    Layer.succeed(Tracing, true),
    // The guards make the server's spans: they know the route's pattern, and keep the client's text out.
    Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)
  )
}))
