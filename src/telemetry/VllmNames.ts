/** Names under which vLLM exports what a metric of ours measures; dashboards made for vLLM read them. Ours are without `mashbox:`. */
const vllmNames: Readonly<Record<string, ReadonlyArray<string>>> = {
  num_requests_running: ["num_requests_running"],
  num_requests_waiting: ["num_requests_waiting"],
  kv_cache_usage_perc: ["kv_cache_usage_perc", "gpu_cache_usage_perc"],
  cache_config_info: ["cache_config_info"],
  request_success_total: ["request_success_total"],
  prompt_tokens_total: ["prompt_tokens_total"],
  generation_tokens_total: ["generation_tokens_total"],
  prefix_cache_queries_total: ["prefix_cache_queries_total", "gpu_prefix_cache_queries_total"],
  prefix_cache_hits_total: ["prefix_cache_hits_total", "gpu_prefix_cache_hits_total"],
  num_preemptions_total: ["num_preemptions_total"],
  time_to_first_token_seconds: ["time_to_first_token_seconds"],
  time_per_output_token_seconds: ["time_per_output_token_seconds", "inter_token_latency_seconds", "request_time_per_output_token_seconds"],
  e2e_request_latency_seconds: ["e2e_request_latency_seconds"],
  request_queue_time_seconds: ["request_queue_time_seconds"],
  request_prefill_time_seconds: ["request_prefill_time_seconds"],
  request_decode_time_seconds: ["request_decode_time_seconds"],
  request_inference_time_seconds: ["request_inference_time_seconds"],
  request_prompt_tokens: ["request_prompt_tokens"],
  request_generation_tokens: ["request_generation_tokens"]
}

const sample = /^mashbox:([a-z0-9_]+?)(_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$/
const comment = /^# (HELP|TYPE) mashbox:([a-z0-9_]+) (.*)$/

const quoted = (label: string) => label.replaceAll("\\", "\\\\").replaceAll("\"", "\\\"").replaceAll("\n", "\\n")

/** The families of a Prometheus text once more under vLLM's names and with its labels. */
export const vllmFamilies = (text: string, model: string): string => {
  const labels = `model_name="${quoted(model)}",engine="0"`
  const families: Array<string> = []
  let lines: Array<(name: string) => string> = []
  let family = ""
  const flush = () => {
    for (const name of vllmNames[family] ?? []) families.push(...lines.map((line) => line(`vllm:${name}`)))
    lines = []
  }
  for (const line of text.split("\n")) {
    const described = comment.exec(line)
    if (described !== null) {
      const [, kind = "", name = "", rest = ""] = described
      if (name !== family) flush()
      family = name
      lines.push((name) => `# ${kind} ${name} ${rest}\n`)
      continue
    }
    const measured = sample.exec(line)
    if (measured === null) continue
    const [, , suffix = "", own, value] = measured
    lines.push((name) => `${name}${suffix}{${labels}${own === undefined ? "" : `,${own}`}} ${value}\n`)
  }
  flush()
  return families.join("")
}
