#include "model/family.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace mashbox::model {
namespace {

constexpr Family Families[] = {
    {"llama", mapLlama},
    {"qwen2", mapQwen2},
    {"qwen3", mapQwen3},
};

// Bounds that no model comes near and that keep every product of sizes inside 64 bits.
constexpr uint32_t MostLayers = 1 << 12, MostWidth = 1 << 20, MostHeads = 1 << 14, MostHeadLength = 1 << 12;

void mapHeads(Keys& keys, Config& config) {
  config.heads = keys.countPerLayer("attention.head_count", config.layers, MostHeads);
  config.kvHeads = keys.has("attention.head_count_kv") ? keys.countPerLayer("attention.head_count_kv", config.layers, MostHeads) : config.heads;
  if (config.heads % config.kvHeads != 0)
    keys.fail(ErrorKind::Inconsistent, "attention.head_count_kv",
              std::to_string(config.kvHeads) + " does not divide the " + std::to_string(config.heads) + " heads");
  const bool divides = config.width % config.heads == 0;
  if (!divides && !(keys.has("attention.key_length") && keys.has("attention.value_length")))
    keys.fail(ErrorKind::Inconsistent, "attention.head_count",
              std::to_string(config.heads) + " does not divide the width of " + std::to_string(config.width));
  const uint32_t fallback = std::max(1u, config.width / config.heads);
  config.keyLength = keys.countOr("attention.key_length", MostHeadLength, fallback);
  config.valueLength = keys.countOr("attention.value_length", MostHeadLength, fallback);
  config.attentionScale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.keyLength)));
  if (keys.has("attention.scale")) config.attentionScale = static_cast<float>(keys.positive("attention.scale"));
}

void mapYarn(Keys& keys, Config& config) {
  Rope& rope = config.rope;
  rope.scaling = RopeScaling::Yarn;
  rope.originalContext = keys.countOr("rope.scaling.original_context_length", std::numeric_limits<uint32_t>::max(), config.contextLength);
  rope.betaFast = keys.positiveOr("rope.scaling.yarn_beta_fast", 32);
  rope.betaSlow = keys.positiveOr("rope.scaling.yarn_beta_slow", 1);
  rope.attentionFactor = keys.positiveOr("rope.scaling.attn_factor", 1);
  keys.refuseUnlessZero("rope.scaling.yarn_log_multiplier", "a YaRN magnitude of its own");
  if (keys.has("rope.scaling.yarn_ext_factor") && keys.positive("rope.scaling.yarn_ext_factor") != 1)
    keys.fail(ErrorKind::Unsupported, "rope.scaling.yarn_ext_factor", "only 1 is supported");
}

void mapRope(Keys& keys, Config& config) {
  Rope& rope = config.rope;
  rope.base = keys.positiveOr("rope.freq_base", 10000);
  rope.dims = keys.countOr("rope.dimension_count", MostHeadLength, config.keyLength);
  if (keys.has("rope.dimension_count") && (rope.dims > config.keyLength || rope.dims % 2 != 0))
    keys.fail(ErrorKind::Invalid, "rope.dimension_count",
              std::to_string(rope.dims) + " is not an even number of at most " + std::to_string(config.keyLength));
  const bool old = keys.has("rope.scale_linear");
  const std::string_view factorKey = old ? "rope.scale_linear" : "rope.scaling.factor";
  const std::string_view type = keys.textOr("rope.scaling.type", keys.has(factorKey) ? "linear" : "none");
  if (type == "none") return;
  rope.factor = keys.positive(factorKey);
  if (type == "linear")
    rope.scaling = RopeScaling::Linear;
  else if (type == "yarn")
    mapYarn(keys, config);
  else
    keys.fail(ErrorKind::Unsupported, "rope.scaling.type", "\"" + escaped(type) + "\" is not supported");
}

} // namespace

const Family* findFamily(std::string_view architecture) {
  const auto* found = std::find_if(std::begin(Families), std::end(Families), [&](const Family& f) { return f.architecture == architecture; });
  return found == std::end(Families) ? nullptr : found;
}

std::string familyNames() {
  std::string names;
  for (const Family& family : Families) names += (names.empty() ? "" : ", ") + std::string(family.architecture);
  return names;
}

void mapTransformer(Keys& keys, Config& config) {
  config.layers = keys.count("block_count", MostLayers);
  if (!keys.has("context_length")) keys.fail(ErrorKind::Invalid, "context_length", "the key is missing");
  config.contextLength = keys.countOr("context_length", std::numeric_limits<uint32_t>::max(), 1);
  config.width = keys.count("embedding_length", MostWidth);
  config.feedForward = keys.countPerLayer("feed_forward_length", config.layers, MostWidth);
  config.epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  mapHeads(keys, config);
  mapRope(keys, config);
  keys.refuseUnlessZero("expert_count", "a mixture of experts");
  keys.refuseUnlessZero("nextn_predict_layers", "multi-token prediction");
  keys.refuseUnlessZero("attention.sliding_window", "a sliding window");
  keys.refuseUnlessZero("attn_logit_softcapping", "soft-capping of attention scores");
  keys.refuseUnlessZero("final_logit_softcapping", "soft-capping of logits");
  keys.refuseUnlessZero("logit_scale", "a scale of the logits");
  keys.refuseUnlessZero("embedding_scale", "a scale of the embedding");
  keys.refuseUnlessZero("residual_scale", "a scale of the residual stream");
}

} // namespace mashbox::model
