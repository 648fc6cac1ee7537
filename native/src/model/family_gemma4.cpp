#include "model/experts_keys.hpp"
#include "model/family.hpp"
#include "model/gemma_keys.hpp"
#include "model/rope_keys.hpp"
#include "model/window_keys.hpp"

#include <optional>
#include <string>
#include <vector>

namespace mashbox::model {
namespace {

/// Sliding layers have heads of their own length.
void mapLengths(Keys& keys, Config& config, const std::vector<bool>& sliding) {
  const auto length = [&](std::string_view key, uint32_t fallback) { return keys.countOr(key, MostHeadLength, fallback); };
  forAttention(config, [&](Attention& attention, uint32_t layer) {
    const uint32_t key = length("attention.key_length_swa", attention.keyLength);
    const uint32_t value = length("attention.value_length_swa", attention.valueLength);
    if (!sliding[layer]) return;
    attention.keyLength = key;
    attention.valueLength = value;
  });
}

/// The last layers attend to the cache of the last layer of their kind that has one.
void mapSharedCaches(Keys& keys, Config& config, const std::vector<bool>& sliding) {
  const auto layers = static_cast<uint32_t>(config.layers.size());
  const uint32_t shared = keys.countOrZero("attention.shared_kv_layers", layers);
  std::optional<uint32_t> last[2];
  forAttention(config, [&](Attention& attention, uint32_t layer) {
    std::optional<uint32_t>& owner = last[sliding[layer]];
    if (layer < layers - shared) {
      owner = layer;
      return;
    }
    if (!owner) return keys.fail(ErrorKind::Inconsistent, "attention.shared_kv_layers", "layer " + std::to_string(layer) + " has none to share with");
    attention.cacheOf = owner;
  });
}

/// Experts stand beside the dense feed-forward, not in its place.
void mapSideExperts(Keys& keys, Config& config) {
  const std::vector<LayerConfig> dense = config.layers;
  mapOptionalExperts(keys, config, {.activation = Activation::Gelu, .normalise = true});
  for (size_t i = 0; i < dense.size(); ++i) config.layers[i].feedForward = dense[i].feedForward;
}

} // namespace

/// Gemma 4: windows and head lengths by layer, a V norm, V from the raw K where there is no attn_v, caches that the last layers share,
/// and embeddings that every layer has of its own. Scores are not scaled.
void mapGemma4(Keys& keys, Config& config) {
  mapGemma(keys, config);
  const auto sliding = mapWindows(keys, config, [](uint32_t layer) { return layer % 6 < 5; });
  mapLengths(keys, config, sliding);
  mapSlidingRope(keys, config, sliding, 10000);
  config.perLayerWidth = keys.countOrZero("embedding_length_per_layer_input", 1 << 16);
  const bool scaled = keys.has("attention.scale") && keys.positiveOrOff("attention.scale") != 0;
  forAttention(config, [&](Attention& attention, uint32_t layer) {
    attention.qkNorm = true;
    attention.valueNorm = true;
    const std::string block = "blk." + std::to_string(layer) + ".";
    attention.valueIsKey = !keys.file().tensor(block + "attn_v.weight") && !keys.file().tensor(block + "attn_qkv.weight");
    if (!scaled) attention.scale = 1;
  });
  mapSharedCaches(keys, config, sliding);
  mapSideExperts(keys, config);
}

} // namespace mashbox::model
