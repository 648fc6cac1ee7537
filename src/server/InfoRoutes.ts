import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import packageJson from "../../package.json" with { type: "json" }
import { openApi } from "../../schema/Api.ts"
import type { Health } from "../../schema/mashbox/Health.ts"
import type { Model, ModelList } from "../../schema/openai/Models.ts"
import { type EngineError, ModelNotFound } from "../domain/Errors.ts"
import { greedyDefaults, wireSampling } from "../domain/Sampling.ts"
import { isNamed, ServedModel } from "../domain/ServedModel.ts"
import { Engine } from "../engine/Engine.ts"
import type { NativeModelInfo } from "../engine/Native.ts"
import { Admission } from "../generation/Admission.ts"
import * as Metrics from "../telemetry/Metrics.ts"

const describeModel = Effect.gen(function*() {
  const served = yield* ServedModel
  const status = yield* (yield* Engine).status
  const ready = status._tag === "Ready" ? status.model : undefined
  const model: Model = {
    id: served.id,
    object: "model",
    type: "model",
    display_name: served.id,
    owned_by: "mashbox-labs",
    created: 0,
    created_at: "1970-01-01T00:00:00Z",
    max_model_len: ready?.contextLength ?? served.contextLength,
    weights: served.weights,
    gb: (ready?.memory.weights ?? served.weightsBytes) / 1e9,
    ...(served.parameters === 0 ? {} : { bpw: served.weightsBytes * 8 / served.parameters }),
    prefix_cache: served.prefixCache,
    slots: ready?.slots ?? served.slots,
    cache_ram_mib: served.cacheRamMib
  }
  return model
})

/** The same model under one of its aliases. */
const named = (model: Model, name: string): Model => ({ ...model, id: name, display_name: name })

/** `GET /v1/models`: the model, then once more for each alias. */
export const listModels = Effect.gen(function*() {
  const model = yield* describeModel
  const { aliases = [] } = yield* ServedModel
  const list: ModelList = {
    object: "list",
    data: [model, ...aliases.map((alias) => named(model, alias))],
    has_more: false,
    first_id: model.id,
    last_id: aliases.at(-1) ?? model.id
  }
  return list
})

/** `GET /v1/models/{model}`. */
export const getModel = Effect.fnUntraced(function*(id: string) {
  if (!isNamed(yield* ServedModel, id)) return yield* new ModelNotFound({ model: id })
  return named(yield* describeModel, id)
})

const healthStatus = { Ready: "ok", Loading: "loading", Failed: "failed" } as const

/** Not the error's own message, which may hold paths: health is open to everybody. */
const failureMessage = (error: EngineError) =>
  `The engine has failed for good (${error.reason}${error.code === undefined ? "" : `, ${error.code}`}).`

const routedExperts = ({ experts, isa }: NativeModelInfo): Health["routed_experts"] => {
  if (experts === null) return null
  const { exactReasons, exactSites, kernelSites } = experts
  return {
    path: exactSites === 0 ? "kernel" : kernelSites === 0 ? "exact" : "mixed",
    kernel: kernelSites === 0 ? null : { id: `routed-experts-${isa}`, version: packageJson.version, package: packageJson.name },
    sites: { kernel: kernelSites, exact: exactSites },
    exact_why: exactReasons
  }
}

/** `GET /v1/health`, `/health` and `/`: 503 until the engine is ready, and whenever it is not. */
export const health = Effect.gen(function*() {
  const served = yield* ServedModel
  const admission = yield* Admission
  const status = yield* (yield* Engine).status
  const body: Health = {
    status: healthStatus[status._tag],
    ...(status._tag === "Failed" ? { message: failureMessage(status.error) } : {}),
    ...(status._tag === "Loading" ? { progress: status.progress } : {}),
    live_rows: yield* admission.running,
    waiting: yield* admission.waiting,
    cache_bytes: 0,
    host_cache_bytes: 0,
    snapshot_bytes: 0,
    host_cache_cap_bytes: served.cacheRamMib * 1024 * 1024,
    host_cache_evictions: 0,
    cache_namespace: null,
    deployment_id: null,
    component_set_sha: null,
    certification: "not_certified",
    compiles_after_ready: status._tag === "Ready" ? 0 : null,
    routed_experts: status._tag === "Ready" ? routedExperts(status.model) : null,
    sampling_defaults: wireSampling(served.samplingDefaults ?? greedyDefaults),
    ...(status.workerPid === undefined ? {} : { worker_pid: status.workerPid }),
    worker_restarts: status.workerRestarts
  }
  return status._tag === "Ready"
    ? HttpServerResponse.jsonUnsafe(body)
    : HttpServerResponse.jsonUnsafe(body, { status: 503, headers: { "retry-after": status._tag === "Failed" ? "30" : "2" } })
})

/** `GET /metrics`. */
export const metrics = Effect.gen(function*() {
  const served = yield* ServedModel
  const admission = yield* Admission
  const status = yield* (yield* Engine).status
  const text = yield* Metrics.render({
    model: served.id,
    running: yield* admission.running,
    waiting: yield* admission.waiting,
    slots: served.slots,
    cacheUse: status._tag === "Ready" ? status.cacheUse : undefined,
    contextLength: status._tag === "Ready" ? status.model.contextLength : served.contextLength,
    workerRestarts: status.workerRestarts
  })
  return HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
})

/** `GET /openapi.json`, with the running model's id in its examples. */
export const openApiDocument = ServedModel.useSync((served) => {
  const document = openApi()
  const question = { model: served.id, messages: [{ role: "user", content: "Name three planets." }] }
  const examples: Readonly<Record<string, object>> = {
    "/v1/chat/completions": { ...question, max_tokens: 64 },
    "/v1/messages": { ...question, max_tokens: 64 },
    "/v1/messages/count_tokens": question
  }
  for (const [path, example] of Object.entries(examples)) {
    const content = document.paths[path]?.post?.requestBody?.content["application/json"]
    if (content !== undefined) Object.assign(content, { example })
  }
  return HttpServerResponse.jsonUnsafe(document)
})
