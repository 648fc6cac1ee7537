#include "model/experts_keys.hpp"
#include "model/family.hpp"
#include "model/window_keys.hpp"

namespace mashbox::model {

/// gpt-oss: biases everywhere, attention sinks, windows on even layers. The bounds of its YaRN ramp are not rounded, which no key says.
void mapGptOss(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Halves);
  config.ropes[0].wholePairs = false;
  config.feedForwardNorm = "post_attention_norm";
  mapWindows(keys, config, [](uint32_t layer) { return layer % 2 == 0; });
  forAttention(config, [](Attention& attention, uint32_t) {
    attention.qkvBias = true;
    attention.sinks = true;
  });
  mapExperts(keys, config, {.activation = Activation::Swiglu, .gating = Gating::SoftmaxOfSelected});
}

} // namespace mashbox::model
