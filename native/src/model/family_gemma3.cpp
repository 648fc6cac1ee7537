#include "model/family.hpp"
#include "model/gemma_keys.hpp"
#include "model/window_keys.hpp"

#include <cmath>

namespace mashbox::model {

/// Gemma 3: norms of Q and K, windows on five of six layers, which have a rope of their own. The 27B model, which has 62 layers, scales
/// by the width per head.
void mapGemma3(Keys& keys, Config& config) {
  mapGemma(keys, config);
  const auto sliding = mapWindows(keys, config, [](uint32_t layer) { return layer % 6 < 5; });
  mapSlidingRope(keys, config, sliding, 10000);
  const bool perHead = config.layers.size() == 62 && !keys.has("attention.scale");
  forAttention(config, [&](Attention& attention, uint32_t) {
    attention.qkNorm = true;
    if (perHead) attention.scale = 1 / std::sqrt(static_cast<float>(config.width) / static_cast<float>(attention.heads));
  });
}

} // namespace mashbox::model
