#include "model/delta_net_keys.hpp"
#include "model/experts_keys.hpp"
#include "model/family.hpp"

namespace mashbox::model {

/// Qwen3-Next: as Qwen3.5-MoE, but value heads are grouped by key head, and the rope has no sections.
void mapQwen3Next(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Halves);
  config.feedForwardNorm = "post_attention_norm";
  forAttention(config, [](Attention& attention, uint32_t) {
    attention.qkNorm = true;
    attention.gate = OutputGate::Sigmoid;
  });
  mapDeltaNet(keys, config, HeadMap::Grouped);
  mapExperts(keys, config, {.normalise = true, .sharedGate = true});
}

} // namespace mashbox::model
