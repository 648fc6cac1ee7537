#include "model/tensors.hpp"

#include <cmath>

namespace mashbox::model {
namespace {

/// Q, K and V from tensors of their own, or from `attn_qkv`, which has their rows behind each other.
void bindProjections(Binder& bind, uint64_t width, const Attention& a, const std::string& block, AttentionTensors& out) {
  const uint64_t queries = uint64_t{a.heads} * a.queryRows(), keys = uint64_t{a.kvHeads} * a.keyLength;
  const uint64_t values = a.valueIsKey ? 0 : uint64_t{a.kvHeads} * a.valueLength;
  if (bind.has(block + "attn_qkv.weight")) {
    const Linear joint = bind.linear(block + "attn_qkv", width, queries + keys + values, a.qkvBias);
    out.query = joint.outputs(0, queries);
    if (a.ownsCache()) out.key = joint.outputs(queries, keys);
    if (a.ownsCache() && values) out.value = joint.outputs(queries + keys, values);
    return;
  }
  out.query = bind.linear(block + "attn_q", width, queries, a.qkvBias);
  if (a.ownsCache()) out.key = bind.linear(block + "attn_k", width, keys, a.qkvBias);
  if (a.ownsCache() && values) out.value = bind.linear(block + "attn_v", width, values, a.qkvBias);
}

AttentionTensors bindAttention(Binder& bind, const Config& config, const Attention& a, const std::string& block) {
  const uint64_t width = config.width, values = uint64_t{a.heads} * a.valueLength;
  AttentionTensors out;
  bindProjections(bind, width, a, block, out);
  if (a.qkNorm) out.queryNorm = bind.vector(block + "attn_q_norm.weight", a.keyLength);
  if (a.qkNorm && a.ownsCache()) out.keyNorm = bind.vector(block + "attn_k_norm.weight", a.keyLength);
  if (a.gate == OutputGate::SoftplusPerHead) out.gate = bind.linear(block + "attn_gate", width, a.heads);
  if (a.gate == OutputGate::SoftplusPerElement) out.gate = bind.linear(block + "attn_gate", width, values);
  if (a.sinks) out.sinks = bind.vector(block + "attn_sinks.weight", a.heads);
  out.output = bind.linear(block + "attn_output", values, width);
  return out;
}

LayerTensors bindLayer(Binder& bind, const Config& config, const LayerConfig& layer, const std::string& block) {
  const uint64_t width = config.width;
  LayerTensors out;
  out.mixerNorm = bind.vector(block + "attn_norm.weight", width);
  if (layer.attention) out.attention = bindAttention(bind, config, *layer.attention, block);
  if (layer.deltaNet) out.deltaNet = bindDeltaNet(bind, config, *layer.deltaNet, block);
  out.feedForwardNorm = bind.vector(block + config.feedForwardNorm + ".weight", width);
  if (config.sandwichNorms) {
    out.mixerAfter = bind.vector(block + "post_attention_norm.weight", width);
    out.feedForwardAfter = bind.vector(block + "post_ffw_norm.weight", width);
    out.scale = bind.scale(block + "layer_output_scale.weight");
  }
  if (layer.feedForward)
    out.feedForward = FeedForwardTensors{bind.linear(block + "ffn_gate", width, layer.feedForward), bind.linear(block + "ffn_up", width, layer.feedForward),
                                         bind.linear(block + "ffn_down", layer.feedForward, width)};
  if (layer.experts) out.experts = bindExperts(bind, config, *layer.experts, block);
  if (layer.feedForward && layer.experts)
    out.sideBySide = {bind.vector(block + "post_ffw_norm_1.weight", width), bind.vector(block + "pre_ffw_norm_2.weight", width),
                      bind.vector(block + "post_ffw_norm_2.weight", width), bind.vector(block + "ffn_gate_inp.scale", width)};
  if (config.perLayerWidth)
    out.perLayer = PerLayerTensors{bind.linear(block + "inp_gate", width, config.perLayerWidth), bind.linear(block + "proj", config.perLayerWidth, width),
                                   bind.vector(block + "post_norm.weight", width)};
  return out;
}

const gguf::Tensor* bindFactors(Binder& bind, const Config& config) {
  const gguf::Tensor* factors = nullptr;
  for (const Rope& rope : config.ropes)
    if (rope.factors) factors = bind.optionalVector("rope_freqs.weight", rope.dims / 2);
  if (!factors) return nullptr;
  for (const float factor : vectorValues(*factors))
    if (!(std::isfinite(factor) && factor > 0)) bind.fail(ErrorKind::Invalid, std::string(factors->name), "a factor is not a finite number above 0");
  return factors;
}

} // namespace

Result<Tensors> bindTensors(const gguf::File& file, const Config& config) {
  Binder bind(file);
  Tensors out;
  out.embedding = bind.matrix("token_embd.weight", config.width, config.vocabulary);
  out.ropeFactors = bindFactors(bind, config);
  if (config.perLayerWidth) {
    const uint64_t all = uint64_t{config.perLayerWidth} * config.layers.size();
    out.perLayerEmbedding = bind.matrix("per_layer_token_embd.weight", all, config.vocabulary);
    out.perLayerProjection = bind.linear("per_layer_model_proj", config.width, all);
    out.perLayerNorm = bind.vector("per_layer_proj_norm.weight", config.perLayerWidth);
  }
  for (size_t i = 0; i < config.layers.size() && !bind.error(); ++i)
    out.layers.push_back(bindLayer(bind, config, config.layers[i], "blk." + std::to_string(i) + "."));
  out.outputNorm = bind.vector("output_norm.weight", config.width);
  if (config.tied)
    out.output = {out.embedding, nullptr, 1};
  else
    out.output = bind.linear("output", config.width, config.vocabulary);
  if (bind.error()) return *bind.error();
  out.used = bind.bound();
  return out;
}

uint64_t Tensors::bytes() const {
  uint64_t total = 0;
  for (const gguf::Tensor* tensor : used) total += tensor->bytes;
  return total;
}

} // namespace mashbox::model
