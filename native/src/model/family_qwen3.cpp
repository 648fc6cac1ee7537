#include "model/family.hpp"

namespace mashbox::model {

/// Qwen3: the Llama block with RMS norms of every head of Q and K; heads × key length may differ from the width.
void mapQwen3(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Halves);
  forAttention(config, [](Attention& attention, uint32_t) { attention.qkNorm = true; });
}

} // namespace mashbox::model
