#include "model/family.hpp"
#include "model/gemma_keys.hpp"
#include "model/window_keys.hpp"

#include <cmath>

namespace mashbox::model {

/// Gemma 2: soft-capped scores, windows on even layers; early files have no keys for the caps and the window. The 27B model, which has
/// 46 layers, scales by the width per head.
void mapGemma2(Keys& keys, Config& config) {
  mapGemma(keys, config);
  mapWindows(keys, config, [](uint32_t layer) { return layer % 2 == 0; }, 4096);
  if (!keys.has("final_logit_softcapping")) config.logitSoftcap = 30;
  const auto softcap = keys.has("attn_logit_softcapping") ? static_cast<float>(keys.positiveOrOff("attn_logit_softcapping")) : 50.0f;
  const bool perHead = config.layers.size() == 46 && !keys.has("attention.scale");
  forAttention(config, [&](Attention& attention, uint32_t) {
    attention.scoreSoftcap = softcap;
    if (perHead) attention.scale = 1 / std::sqrt(static_cast<float>(config.width) / static_cast<float>(attention.heads));
  });
}

} // namespace mashbox::model
