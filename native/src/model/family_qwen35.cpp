#include "model/delta_net_keys.hpp"
#include "model/family.hpp"

#include <string>
#include <vector>

namespace mashbox::model {
namespace {

/// The sections of a multimodal rope say which of four positions turns a pair of dimensions: time, height and width, which are the
/// same in text, or a fourth that text does not have.
void checkSections(Keys& keys, const Rope& rope) {
  constexpr std::string_view key = "rope.dimension_sections";
  if (!keys.has(key)) return;
  const auto sections = keys.countsPerLayer(key, 4, 1 << 12, 0);
  const uint32_t sum = sections[0] + sections[1] + sections[2] + sections[3];
  for (uint32_t pair = 0; pair < rope.dims / 2; ++pair)
    if (const uint32_t at = sum ? pair % sum : 0; sum == 0 || at >= 3 * sections[at % 3])
      return keys.fail(ErrorKind::Unsupported, key, "pair " + std::to_string(pair) + " of the rotated dimensions has no position in text");
}

} // namespace

/// Qwen3.5: three layers of gated delta net, then one of gated attention; the norm before the feed-forward is called post_attention_norm.
void mapQwen35(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Halves);
  checkSections(keys, config.ropes[0]);
  config.feedForwardNorm = "post_attention_norm";
  forAttention(config, [](Attention& attention, uint32_t) {
    attention.qkNorm = true;
    attention.gate = OutputGate::Sigmoid;
  });
  mapDeltaNet(keys, config, HeadMap::Tiled);
}

} // namespace mashbox::model
