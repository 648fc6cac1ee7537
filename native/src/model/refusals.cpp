#include "model/refusals.hpp"

namespace mashbox::model {
namespace {

struct Mechanism {
  std::string_view key, what;
};

constexpr Mechanism Mechanisms[] = {
    {"expert_count", "a mixture of experts"},
    {"nextn_predict_layers", "multi-token prediction"},
    {"attention.sliding_window", "a sliding window"},
    {"attention.sliding_window_pattern", "a pattern of sliding windows"},
    {"attention.key_length_swa", "another key length in sliding layers"},
    {"attention.value_length_swa", "another value length in sliding layers"},
    {"attention.shared_kv_layers", "layers that share a KV cache"},
    {"attention.chunked_attention_size", "chunked attention"},
    {"attention.clamp_kqv", "clamped queries, keys and values"},
    {"attention.max_alibi_bias", "ALiBi"},
    {"attention.layer_norm_epsilon", "a layer norm with a mean"},
    {"attention.group_norm_epsilon", "a group norm"},
    {"attention.temperature_length", "a temperature that depends on the position"},
    {"attention.temperature_scale", "a temperature that depends on the position"},
    {"attention.output_scale", "a scale of the attention's output"},
    {"attention.q_lora_rank", "latent queries"},
    {"attention.kv_lora_rank", "a latent KV cache"},
    {"attention.recurrent_layers", "recurrent layers"},
    {"full_attention_interval", "recurrent layers"},
    {"ssm.state_size", "a state-space model"},
    {"ssm.inner_size", "a state-space model"},
    {"wkv.head_size", "a linear attention"},
    {"attn_logit_softcapping", "soft-capping of attention scores"},
    {"router_logit_softcapping", "soft-capping of router logits"},
    {"final_logit_softcapping", "soft-capping of logits"},
    {"logit_scale", "a scale of the logits"},
    {"embedding_scale", "a scale of the embedding"},
    {"residual_scale", "a scale of the residual stream"},
    {"embedding_length_per_layer_input", "embeddings per layer"},
    {"use_parallel_residual", "a parallel residual stream"},
    {"rope.dimension_sections", "sections of rope dimensions"},
    {"rope.freq_base_swa", "another rope base in sliding layers"},
    {"rope.dimension_count_swa", "other rope dimensions in sliding layers"},
    {"rope.scaling.yarn_log_multiplier", "a YaRN magnitude of its own"},
    {"interleave_moe_layer_step", "experts in some layers only"},
    {"moe_every_n_layers", "experts in some layers only"},
    {"swiglu_clamp_exp", "a clamped activation"},
    {"swiglu_clamp_shexp", "a clamped activation"},
};

} // namespace

void refuseUnseenKeys(Keys& keys) {
  for (const Mechanism& mechanism : Mechanisms)
    if (!keys.seen(mechanism.key)) keys.refuseUnlessZero(mechanism.key, mechanism.what);
  if (!keys.flagOr("attention.causal", true)) keys.fail(ErrorKind::Unsupported, "attention.causal", "attention to later tokens is not supported");
}

} // namespace mashbox::model
