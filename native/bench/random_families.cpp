#include "random_model.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <optional>

namespace mashbox::bench {
namespace {

using quant::Type;

/// What mid-size models of all families have in common.
constexpr uint32_t Width = 1024, Heads = 16, KvHeads = 4, HeadLength = 64, FeedForward = 3072, Vocabulary = 32768, Window = 512;
constexpr uint32_t ExpertCount = 32, ExpertsUsed = 4, ExpertWidth = 512;
constexpr Type Matrix = Type::Q4_K;

std::string block(uint32_t layer) { return "blk." + std::to_string(layer) + "."; }

RandomModel begin(const std::string& architecture, uint32_t layers, uint32_t headLength = HeadLength, uint32_t tokens = Vocabulary) {
  RandomModel model(architecture);
  model.count("block_count", layers).count("context_length", 32768).count("embedding_length", Width).number("attention.layer_norm_rms_epsilon", 1e-6f);
  model.count("attention.key_length", headLength).count("attention.value_length", headLength);
  model.tensor("token_embd.weight", {Width, tokens}, Type::Q6_K, 0, 0.5f);
  model.ones("output_norm.weight", Width);
  return model;
}

RandomModel dense(const std::string& architecture, uint32_t layers) {
  RandomModel model = begin(architecture, layers);
  model.count("feed_forward_length", FeedForward).count("attention.head_count", Heads).count("attention.head_count_kv", KvHeads);
  return model;
}

struct AttentionShape {
  uint32_t heads = Heads, kvHeads = KvHeads, length = HeadLength;
  bool norms = false, biases = false, value = true, cache = true;
  uint32_t queryRows = 1; ///< per head, in head lengths
};

void attention(RandomModel& model, const std::string& at, const AttentionShape& shape) {
  const uint32_t queries = shape.heads * shape.length, keys = shape.kvHeads * shape.length;
  model.ones(at + "attn_norm.weight", Width);
  model.tensor(at + "attn_q.weight", {Width, queries * shape.queryRows}, Matrix);
  if (shape.cache) model.tensor(at + "attn_k.weight", {Width, keys}, Matrix);
  if (shape.cache && shape.value) model.tensor(at + "attn_v.weight", {Width, keys}, Matrix);
  model.tensor(at + "attn_output.weight", {queries, Width}, Matrix);
  if (shape.norms) model.ones(at + "attn_q_norm.weight", shape.length);
  if (shape.norms && shape.cache) model.ones(at + "attn_k_norm.weight", shape.length);
  if (!shape.biases) return;
  model.tensor(at + "attn_q.bias", {queries}, Type::F32);
  model.tensor(at + "attn_k.bias", {keys}, Type::F32);
  model.tensor(at + "attn_v.bias", {keys}, Type::F32);
}

void feedForward(RandomModel& model, const std::string& at, uint32_t width = FeedForward) {
  model.tensor(at + "ffn_gate.weight", {Width, width}, Matrix);
  model.tensor(at + "ffn_up.weight", {Width, width}, Matrix);
  model.tensor(at + "ffn_down.weight", {width, Width}, Matrix);
}

void expertKeys(RandomModel& model, uint32_t shared) {
  model.count("expert_count", ExpertCount).count("expert_used_count", ExpertsUsed).count("expert_feed_forward_length", ExpertWidth);
  if (shared) model.count("expert_shared_feed_forward_length", shared);
}

void experts(RandomModel& model, const std::string& at, Type type, uint32_t shared, bool sharedGate) {
  model.tensor(at + "ffn_gate_inp.weight", {Width, ExpertCount}, Type::F32);
  model.tensor(at + "ffn_gate_exps.weight", {Width, ExpertWidth, ExpertCount}, type);
  model.tensor(at + "ffn_up_exps.weight", {Width, ExpertWidth, ExpertCount}, type);
  model.tensor(at + "ffn_down_exps.weight", {ExpertWidth, Width, ExpertCount}, type);
  if (shared == 0) return;
  model.tensor(at + "ffn_gate_shexp.weight", {Width, shared}, Matrix);
  model.tensor(at + "ffn_up_shexp.weight", {Width, shared}, Matrix);
  model.tensor(at + "ffn_down_shexp.weight", {shared, Width}, Matrix);
  if (sharedGate) model.tensor(at + "ffn_gate_inp_shexp.weight", {Width}, Type::F32);
}

/// Llama, SmolLM3, Qwen 2 and 3: plain blocks.
RandomModel plain(const std::string& architecture, const AttentionShape& shape) {
  constexpr uint32_t Layers = 16;
  RandomModel model = dense(architecture, Layers);
  for (uint32_t i = 0; i < Layers; ++i) {
    attention(model, block(i), shape);
    model.ones(block(i) + "ffn_norm.weight", Width);
    feedForward(model, block(i));
  }
  return model;
}

RandomModel mixture(const std::string& architecture, const AttentionShape& shape, uint32_t shared) {
  constexpr uint32_t Layers = 10;
  RandomModel model = dense(architecture, Layers);
  expertKeys(model, shared);
  for (uint32_t i = 0; i < Layers; ++i) {
    attention(model, block(i), shape);
    model.ones(block(i) + "ffn_norm.weight", Width);
    experts(model, block(i), Matrix, shared, shared != 0);
  }
  return model;
}

constexpr uint32_t DeltaLength = 128, DeltaKeyHeads = 8, DeltaValueHeads = 16;

void deltaNet(RandomModel& model, const std::string& at, bool fused) {
  constexpr uint32_t Values = DeltaValueHeads * DeltaLength, Channels = 2 * DeltaKeyHeads * DeltaLength + Values;
  model.ones(at + "attn_norm.weight", Width);
  model.tensor(at + "attn_qkv.weight", {Width, Channels}, Matrix);
  model.tensor(at + "attn_gate.weight", {Width, Values}, Matrix);
  model.tensor(at + "ssm_conv1d.weight", {4, Channels}, Type::F32);
  if (fused)
    model.tensor(at + "ssm_ba.weight", {Width, 2 * DeltaValueHeads}, Matrix);
  else
    for (const char* name : {"ssm_alpha.weight", "ssm_beta.weight"}) model.tensor(at + name, {Width, DeltaValueHeads}, Matrix);
  model.tensor(at + "ssm_a", {DeltaValueHeads}, Type::F32, -1, 0.2f);
  model.tensor(at + "ssm_dt.bias", {DeltaValueHeads}, Type::F32, -2, 0.5f);
  model.ones(at + "ssm_norm.weight", DeltaLength);
  model.tensor(at + "ssm_out.weight", {Values, Width}, Matrix);
}

/// Qwen 3.5 and Qwen3-Next: three gated DeltaNets to one gated attention.
RandomModel hybrid(const std::string& architecture, bool mixed, bool fused) {
  constexpr uint32_t Layers = 12, Length = 128;
  RandomModel model = begin(architecture, Layers, Length);
  model.count("attention.head_count", 8).count("attention.head_count_kv", 2).count("rope.dimension_count", 32).number("rope.freq_base", 1e7f);
  model.count("feed_forward_length", FeedForward).count("full_attention_interval", 4);
  model.count("ssm.conv_kernel", 4).count("ssm.state_size", DeltaLength).count("ssm.group_count", DeltaKeyHeads);
  model.count("ssm.time_step_rank", DeltaValueHeads).count("ssm.inner_size", DeltaValueHeads * DeltaLength);
  if (!fused) model.counts("rope.dimension_sections", {6, 5, 5, 0});
  if (mixed) expertKeys(model, ExpertWidth);
  for (uint32_t i = 0; i < Layers; ++i) {
    if ((i + 1) % 4 == 0)
      attention(model, block(i), {.heads = 8, .kvHeads = 2, .length = Length, .norms = true, .queryRows = 2});
    else
      deltaNet(model, block(i), fused);
    model.ones(block(i) + "post_attention_norm.weight", Width);
    if (mixed)
      experts(model, block(i), Matrix, ExpertWidth, true);
    else
      feedForward(model, block(i));
  }
  return model;
}

void sandwich(RandomModel& model, const std::string& at) {
  for (const char* name : {"ffn_norm.weight", "post_attention_norm.weight", "post_ffw_norm.weight"}) model.ones(at + name, Width);
}

RandomModel gemma2() {
  constexpr uint32_t Layers = 16;
  RandomModel model = dense("gemma2", Layers);
  model.number("attn_logit_softcapping", 50).number("final_logit_softcapping", 30).count("attention.sliding_window", Window);
  for (uint32_t i = 0; i < Layers; ++i) {
    attention(model, block(i), {});
    sandwich(model, block(i));
    feedForward(model, block(i));
  }
  return model;
}

RandomModel gemma3() {
  constexpr uint32_t Layers = 18;
  RandomModel model = dense("gemma3", Layers);
  model.number("rope.freq_base", 1e6f).number("rope.freq_base_swa", 1e4f).count("attention.sliding_window", Window);
  for (uint32_t i = 0; i < Layers; ++i) {
    attention(model, block(i), {.norms = true});
    sandwich(model, block(i));
    feedForward(model, block(i));
  }
  return model;
}

/// Gemma 4: five sliding layers to a full one with longer heads. Small ones have embeddings per layer, mixtures experts beside a dense layer.
RandomModel gemma4(bool perLayer, bool mixed) {
  constexpr uint32_t Layers = 12, Full = 128, Sliding = 64, Inner = 256;
  const uint32_t wide = mixed ? 1024 : FeedForward;
  RandomModel model = begin("gemma4", Layers, Full);
  std::vector<bool> pattern;
  for (uint32_t i = 0; i < Layers; ++i) pattern.push_back(i % 6 < 5);
  model.count("attention.head_count", 8).count("attention.head_count_kv", 2).count("feed_forward_length", wide).number("final_logit_softcapping", 30);
  model.number("rope.freq_base", 1e6f).number("rope.freq_base_swa", 1e4f).count("attention.sliding_window", Window).flags("attention.sliding_window_pattern", pattern);
  model.count("attention.key_length_swa", Sliding).count("attention.value_length_swa", Sliding);
  model.count("rope.dimension_count", Full).count("rope.dimension_count_swa", Sliding);
  if (mixed) expertKeys(model, 0);
  if (perLayer) {
    model.count("embedding_length_per_layer_input", Inner);
    model.tensor("per_layer_token_embd.weight", {uint64_t{Inner} * Layers, Vocabulary}, Type::Q4_K, 0, 0.5f);
    model.tensor("per_layer_model_proj.weight", {Width, uint64_t{Inner} * Layers}, Type::F16);
    model.ones("per_layer_proj_norm.weight", Inner);
  }
  for (uint32_t i = 0; i < Layers; ++i) {
    const std::string at = block(i);
    attention(model, at, {.heads = 8, .kvHeads = 2, .length = pattern[i] ? Sliding : Full, .norms = true, .value = pattern[i] || perLayer});
    sandwich(model, at);
    feedForward(model, at, wide);
    if (perLayer) {
      model.tensor(at + "inp_gate.weight", {Width, Inner}, Matrix);
      model.tensor(at + "proj.weight", {Inner, Width}, Matrix);
      model.ones(at + "post_norm.weight", Width);
    }
    if (!mixed) continue;
    for (const char* name : {"post_ffw_norm_1.weight", "pre_ffw_norm_2.weight", "post_ffw_norm_2.weight", "ffn_gate_inp.scale"}) model.ones(at + name, Width);
    model.tensor(at + "ffn_gate_inp.weight", {Width, ExpertCount}, Type::F32);
    model.tensor(at + "ffn_gate_up_exps.weight", {Width, 2 * ExpertWidth, ExpertCount}, Matrix);
    model.tensor(at + "ffn_down_exps.weight", {ExpertWidth, Width, ExpertCount}, Matrix);
    model.ones(at + "ffn_down_exps.scale", ExpertCount);
  }
  return model;
}

RandomModel laguna() {
  constexpr uint32_t Layers = 12;
  RandomModel model = begin("laguna", Layers);
  std::vector<uint32_t> heads;
  for (uint32_t i = 0; i < Layers; ++i) heads.push_back(i % 4 == 0 ? 12 : 16);
  model.counts("attention.head_count", heads).count("attention.head_count_kv", KvHeads).count("feed_forward_length", FeedForward);
  model.number("rope.freq_base", 5e5f).number("rope.freq_base_swa", 1e4f).count("rope.dimension_count", 32).count("rope.dimension_count_swa", 64);
  model.text("rope.scaling.type", "yarn").number("rope.scaling.factor", 32).count("rope.scaling.original_context_length", 4096);
  model.count("attention.sliding_window", Window).count("leading_dense_block_count", 1);
  model.flag("expert_weights_norm", true).number("expert_weights_scale", 2.5f).count("expert_gating_func", 2);
  expertKeys(model, ExpertWidth);
  for (uint32_t i = 0; i < Layers; ++i) {
    attention(model, block(i), {.heads = heads[i], .norms = true});
    model.tensor(block(i) + "attn_gate.weight", {Width, heads[i]}, Matrix);
    model.ones(block(i) + "ffn_norm.weight", Width);
    if (i == 0) {
      feedForward(model, block(i));
      continue;
    }
    experts(model, block(i), Matrix, ExpertWidth, false);
    model.tensor(block(i) + "exp_probs_b.bias", {ExpertCount}, Type::F32, 0, 0.1f);
  }
  return model;
}

RandomModel gptOss() {
  constexpr uint32_t Layers = 12;
  RandomModel model = begin("gpt-oss", Layers);
  model.count("attention.head_count", Heads).count("attention.head_count_kv", KvHeads).count("feed_forward_length", ExpertWidth);
  model.text("rope.scaling.type", "yarn").number("rope.scaling.factor", 32).count("rope.scaling.original_context_length", 4096);
  model.number("rope.freq_base", 150000).count("attention.sliding_window", 128);
  expertKeys(model, 0);
  for (uint32_t i = 0; i < Layers; ++i) {
    const std::string at = block(i);
    attention(model, at, {.biases = true});
    model.tensor(at + "attn_output.bias", {Width}, Type::F32);
    model.tensor(at + "attn_sinks.weight", {Heads}, Type::F32, 0, 1);
    model.ones(at + "post_attention_norm.weight", Width);
    experts(model, at, Type::MXFP4, 0, false);
    model.tensor(at + "ffn_gate_inp.bias", {ExpertCount}, Type::F32);
    model.tensor(at + "ffn_gate_exps.bias", {ExpertWidth, ExpertCount}, Type::F32);
    model.tensor(at + "ffn_up_exps.bias", {ExpertWidth, ExpertCount}, Type::F32);
    model.tensor(at + "ffn_down_exps.bias", {Width, ExpertCount}, Type::F32);
  }
  return model;
}

const std::vector<std::pair<std::string, std::function<RandomModel()>>> Families = {
    {"llama", [] { return plain("llama", {}); }},
    {"smollm3", [] { return plain("smollm3", {}); }},
    {"qwen2", [] { return plain("qwen2", {.biases = true}); }},
    {"qwen3", [] { return plain("qwen3", {.norms = true}); }},
    {"qwen35", [] { return hybrid("qwen35", false, false); }},
    {"gemma2", gemma2},
    {"gemma3", gemma3},
    {"gemma4", [] { return gemma4(false, false); }},
    {"gemma4-e", [] { return gemma4(true, false); }},
    {"mixtral", [] { return mixture("llama", {}, 0); }},
    {"qwen2moe", [] { return mixture("qwen2moe", {.biases = true}, ExpertWidth); }},
    {"qwen3moe", [] { return mixture("qwen3moe", {.norms = true}, 0); }},
    {"qwen35moe", [] { return hybrid("qwen35moe", true, false); }},
    {"qwen3next", [] { return hybrid("qwen3next", true, true); }},
    {"gemma4-a4b", [] { return gemma4(false, true); }},
    {"laguna", laguna},
    {"gpt-oss", gptOss},
};

} // namespace

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Families) names.push_back(name);
  return names;
}

RandomModel randomFamily(const std::string& family) {
  for (const auto& [name, make] : Families)
    if (name == family) return make();
  return RandomModel("");
}

RandomModel randomQwen3Small(uint32_t tokens) {
  constexpr uint32_t Layers = 28, KeyHeads = 8, KeyLength = 128;
  RandomModel model = begin("qwen3", Layers, KeyLength, tokens);
  model.count("feed_forward_length", FeedForward).count("attention.head_count", Heads).count("attention.head_count_kv", KeyHeads);
  for (uint32_t i = 0; i < Layers; ++i) {
    attention(model, block(i), {.kvHeads = KeyHeads, .length = KeyLength, .norms = true});
    model.ones(block(i) + "ffn_norm.weight", Width);
    feedForward(model, block(i));
  }
  return model;
}

} // namespace mashbox::bench
