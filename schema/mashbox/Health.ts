import { Schema } from "effect"

const RoutedExperts = Schema.Struct({
  path: Schema.Literals(["kernel", "exact", "mixed"]).annotate({
    description:
      "kernel: every site has a kernel of the CPU's instruction tier; exact: all run the scalar reference or are dequantized first."
  }),
  kernel: Schema.NullOr(Schema.Struct({ id: Schema.String, version: Schema.String, package: Schema.String })).annotate({
    description: "id, version, package; null where no site runs on it."
  }),
  sites: Schema.Struct({
    kernel: Schema.Int.annotate({ description: "Call sites on the kernel: a layer's gate, up and down each are one." }),
    exact: Schema.Int.annotate({ description: "Call sites on the exact path." })
  }),
  exact_why: Schema.Array(Schema.String).annotate({ description: "Why sites ran exact." })
})

export const Health = Schema.Struct({
  status: Schema.Literals(["ok", "loading", "failed"]).annotate({
    description:
      "ok when the model is loaded, loading before (and while its worker restarts), failed when it can never be: the server is about to end."
  }),
  message: Schema.optionalKey(
    Schema.String.annotate({ description: "When failed: what kind of failure it was; the server's log has the rest." })
  ),
  progress: Schema.optionalKey(Schema.Finite.annotate({ description: "While loading: how much of the model is loaded, 0 to 1." })),
  live_rows: Schema.NullOr(Schema.Int).annotate({ description: "Requests being answered now." }),
  waiting: Schema.Int.annotate({ description: "Requests waiting for a slot." }),
  cache_bytes: Schema.Int.annotate({
    description: "Bytes the prompt cache holds in host memory: host_cache_bytes plus snapshot_bytes, each copy counted once."
  }),
  host_cache_bytes: Schema.Int.annotate({ description: "Bytes of the host memory prompt cache, each copy counted once." }),
  snapshot_bytes: Schema.Int.annotate({ description: "Bytes of saved slot state points that host_cache_bytes does not already count." }),
  host_cache_cap_bytes: Schema.Int.annotate({ description: "Most bytes the host memory prompt cache holds (0 = off)." }),
  host_cache_evictions: Schema.Int.annotate({ description: "Prompt cache entries removed from host memory to stay under that cap." }),
  cache_namespace: Schema.NullOr(Schema.String).annotate({
    description: "Id of what cached prompts are valid for: model, weights, tokenizer, chat template and cache policy."
  }),
  deployment_id: Schema.NullOr(Schema.String).annotate({ description: "Id of the compiled programs this server runs (null until set)." }),
  component_set_sha: Schema.NullOr(Schema.String).annotate({ description: "Id of the model's component set (null until set)." }),
  certification: Schema.Literals(["certified", "not_certified"]).annotate({
    description: "Whether this server's build passed the certification gate on its chip."
  }),
  compiles_after_ready: Schema.NullOr(Schema.Int).annotate({
    description: "Programs compiled since the server reported ready (null before ready or where this process does not count them)."
  }),
  routed_experts: Schema.NullOr(RoutedExperts).annotate({
    description: "Mixture-of-experts models: the path the routed experts run on. Null for a dense model and before the model is loaded."
  }),
  sampling_defaults: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Finite).annotate({
      description: "What holds where a request says nothing of sampling: greedy, unless the server was started with --sampling model."
    })
  ),
  worker_pid: Schema.optionalKey(
    Schema.Int.annotate({ description: "Process id of the model's worker, when the engine runs in a worker process." })
  ),
  worker_restarts: Schema.Int.annotate({ description: "Times the worker was started again after a fault." })
}).annotate({ identifier: "Health" })
export type Health = typeof Health.Type
