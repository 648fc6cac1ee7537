#include "model/family.hpp"

namespace mashbox::model {

/// SmolLM3: the Llama block; every fourth layer has no position at all, which no key says.
void mapSmollm3(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Adjacent);
  forAttention(config, [](Attention& attention, uint32_t layer) {
    if ((layer + 1) % 4 == 0) attention.rope.reset();
  });
}

} // namespace mashbox::model
