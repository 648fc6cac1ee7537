#include "model/family.hpp"

namespace mashbox::model {

/// Qwen2 and Qwen2.5: the Llama block with biases on Q, K and V.
void mapQwen2(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Halves);
  forAttention(config, [](Attention& attention, uint32_t) { attention.qkvBias = true; });
}

} // namespace mashbox::model
