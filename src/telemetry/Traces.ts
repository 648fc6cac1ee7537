import { Effect, Layer } from "effect"

/** Exports traces over OTLP when OTEL_EXPORTER_OTLP_ENDPOINT (or its traces variant) is set; otherwise nothing is loaded. */
export const layer: Layer.Layer<never> = Layer.unwrap(Effect.promise(async () => {
  const configured = process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? process.env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
  if (configured === undefined || configured === "") return Layer.empty
  const [{ Otlp, OtlpSerialization }, { FetchHttpClient }] = await Promise.all([import("effect/observability"), import("effect/http")])
  return Otlp.layerFromConfig().pipe(Layer.provide([FetchHttpClient.layer, OtlpSerialization.layerJson]), Layer.orDie)
}))
