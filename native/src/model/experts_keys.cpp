#include "model/experts_keys.hpp"

#include "base/text.hpp"
#include "gguf/file.hpp"

#include <algorithm>
#include <string>

namespace mashbox::model {
namespace {

constexpr uint32_t MostExperts = 1 << 12, MostWidth = 1 << 20;

void readGating(Keys& keys, Experts& experts) {
  constexpr std::string_view key = "expert_gating_func";
  switch (const uint32_t value = keys.countOrZero(key, 255)) {
  case 0: return;
  case 1: experts.gating = Gating::Softmax; return;
  case 2: experts.gating = Gating::Sigmoid; return;
  case 3: experts.gating = Gating::SoftmaxOfSelected; return;
  case 4: experts.gating = Gating::RootSoftplus; return;
  default:
    keys.fail(ErrorKind::Unsupported, key,
              std::to_string(value) + " is not 1 (softmax), 2 (sigmoid), 3 (softmax of the selected) or 4 (square root of softplus)");
  }
}

void readGroups(Keys& keys, Experts& experts) {
  experts.groups = std::max(1u, keys.countOrZero("expert_group_count", MostExperts));
  experts.usedGroups = experts.groups;
  if (const uint32_t used = keys.countOrZero("expert_group_used_count", MostExperts)) experts.usedGroups = used;
  if (experts.count % experts.groups != 0)
    return keys.fail(ErrorKind::Inconsistent, "expert_group_count",
                     std::to_string(experts.groups) + " does not divide the " + std::to_string(experts.count) + " experts");
  if (experts.usedGroups > experts.groups)
    return keys.fail(ErrorKind::Inconsistent, "expert_group_used_count",
                     std::to_string(experts.usedGroups) + " is more than the " + std::to_string(experts.groups) + " groups");
  const uint64_t choice = uint64_t{experts.count / experts.groups} * experts.usedGroups;
  if (experts.used > choice)
    keys.fail(ErrorKind::Inconsistent, "expert_used_count",
              std::to_string(experts.used) + " is more than the " + std::to_string(choice) + " experts of the groups that are used");
}

Experts readExperts(Keys& keys, const Experts& family) {
  Experts out = family;
  out.count = keys.count("expert_count", MostExperts);
  out.used = keys.count("expert_used_count", MostExperts);
  if (out.used > out.count)
    keys.fail(ErrorKind::Inconsistent, "expert_used_count", std::to_string(out.used) + " is more than the " + std::to_string(out.count) + " experts");
  readGating(keys, out);
  out.normalise = keys.flagOr("expert_weights_norm", family.normalise);
  if (const double scale = keys.positiveOrOff("expert_weights_scale"); scale != 0) out.scale = static_cast<float>(scale);
  readGroups(keys, out);
  return out;
}

/// The width of a layer's shared expert. `expert_shared_count` says nothing: many files lack it.
uint32_t sharedWidth(Keys& keys, uint32_t layer) {
  const gguf::Tensor* gate = keys.file().tensor("blk." + std::to_string(layer) + ".ffn_gate_shexp.weight");
  const uint32_t width = keys.countOrZero("expert_shared_feed_forward_length", MostWidth);
  if (!gate) return 0;
  return width ? width : static_cast<uint32_t>(std::min<uint64_t>(gate->dims[1], MostWidth));
}

} // namespace

void mapExperts(Keys& keys, Config& config, const Experts& family) {
  const Experts experts = readExperts(keys, family);
  const uint32_t dense = keys.countOrZero("leading_dense_block_count", 1 << 12);
  keys.countOrZero("expert_shared_count", MostExperts);
  const auto blocks = static_cast<uint32_t>(config.layers.size()) + keys.countOrZero("nextn_predict_layers", 1 << 12);
  const bool own = keys.has("expert_feed_forward_length");
  const auto widths = own ? keys.countsPerLayer("expert_feed_forward_length", blocks, MostWidth, 0) : std::vector<uint32_t>();
  for (uint32_t i = dense; i < config.layers.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    layer.experts = experts;
    layer.experts->width = own ? widths[i] : layer.feedForward;
    layer.experts->sharedWidth = sharedWidth(keys, i);
    layer.feedForward = 0;
    if (layer.experts->width == 0) keys.fail(ErrorKind::Invalid, "expert_feed_forward_length", "layer " + std::to_string(i) + " has experts of width 0");
  }
}

void mapOptionalExperts(Keys& keys, Config& config, const Experts& family) {
  if (keys.countOrZero("expert_count", MostExperts) != 0) mapExperts(keys, config, family);
}

} // namespace mashbox::model
