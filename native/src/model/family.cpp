#include "model/family.hpp"

#include "model/rope_keys.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace mashbox::model {
namespace {

#define MASHBOX_FAMILY(architecture, mapping) {architecture, mapping},
constexpr Family Families[] = {MASHBOX_FAMILIES(MASHBOX_FAMILY)};
#undef MASHBOX_FAMILY

// Bounds that no model comes near and that keep every product of sizes inside 64 bits.
constexpr uint32_t MostLayers = 1 << 12, MostWidth = 1 << 20, MostHeads = 1 << 14;

/// Blocks of the trunk. Those for multi-token prediction follow it.
uint32_t mapLayers(Keys& keys, uint32_t blocks, Config& config) {
  const uint32_t extra = keys.countOrZero("nextn_predict_layers", MostLayers);
  if (extra >= blocks) keys.fail(ErrorKind::Unsupported, "nextn_predict_layers", "all " + std::to_string(blocks) + " blocks are for multi-token prediction");
  const uint32_t layers = extra < blocks ? blocks - extra : 1;
  config.layers.resize(layers);
  config.predictionBlocks = blocks - layers;
  return layers;
}

void mapHeads(Keys& keys, uint32_t blocks, Config& config) {
  const auto heads = keys.countsPerLayer("attention.head_count", blocks, MostHeads);
  const auto kvHeads = keys.has("attention.head_count_kv") ? keys.countsPerLayer("attention.head_count_kv", blocks, MostHeads) : heads;
  const bool lengths = keys.has("attention.key_length") && keys.has("attention.value_length");
  for (uint32_t i = 0; i < config.layers.size(); ++i) {
    if (heads[i] % kvHeads[i] != 0)
      keys.fail(ErrorKind::Inconsistent, "attention.head_count_kv",
                std::to_string(kvHeads[i]) + " does not divide the " + std::to_string(heads[i]) + " heads");
    if (config.width % heads[i] != 0 && !lengths)
      keys.fail(ErrorKind::Inconsistent, "attention.head_count",
                std::to_string(heads[i]) + " does not divide the width of " + std::to_string(config.width));
    const uint32_t fallback = std::max(1u, config.width / heads[i]);
    Attention& attention = config.layers[i].attention.emplace();
    attention.heads = heads[i];
    attention.kvHeads = kvHeads[i];
    attention.keyLength = keys.countOr("attention.key_length", MostHeadLength, fallback);
    attention.valueLength = keys.countOr("attention.value_length", MostHeadLength, fallback);
    attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.keyLength)));
  }
  if (const double scale = keys.positiveOrOff("attention.scale"); scale != 0)
    forAttention(config, [&](Attention& attention, uint32_t) { attention.scale = static_cast<float>(scale); });
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

void mapTransformer(Keys& keys, Config& config, RopePairing pairing) {
  const uint32_t blocks = keys.count("block_count", MostLayers);
  const uint32_t layers = mapLayers(keys, blocks, config);
  if (!keys.has("context_length")) keys.fail(ErrorKind::Invalid, "context_length", "the key is missing");
  config.contextLength = keys.countOr("context_length", std::numeric_limits<uint32_t>::max(), 1);
  config.width = keys.count("embedding_length", MostWidth);
  // Where all layers have experts, the width of a dense feed-forward may be missing or 0.
  const bool experts = keys.file().find(keys.name("expert_feed_forward_length")) != nullptr;
  const auto feedForward = keys.has("feed_forward_length") || !experts ? keys.countsPerLayer("feed_forward_length", blocks, MostWidth, experts ? 0 : 1)
                                                                       : std::vector<uint32_t>(blocks);
  for (uint32_t i = 0; i < layers; ++i) config.layers[i].feedForward = feedForward[i];
  config.epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  mapHeads(keys, blocks, config);
  config.ropes = {readRope(keys, config, pairing)};
}

} // namespace mashbox::model
