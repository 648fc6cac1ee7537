#include "model/experts_keys.hpp"
#include "model/family.hpp"
#include "model/window_keys.hpp"

#include <string>

namespace mashbox::model {

/// Laguna: norms of Q and K, an output gate by softplus, heads by layer, windows on all but every fourth layer, which have a plain rope.
/// `rope.scaling.yarn_attn_factor` is Hugging Face's attention_factor, which the magnitude already contains. Experts are
/// chosen by sigmoids with a selection bias; one more always runs.
void mapLaguna(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Halves);
  const auto sliding = mapWindows(keys, config, [](uint32_t layer) { return layer % 4 != 0; });
  mapSlidingRope(keys, config, sliding, 10000);
  forAttention(config, [&](Attention& attention, uint32_t layer) {
    attention.qkNorm = true;
    const gguf::Tensor* gate = keys.file().tensor("blk." + std::to_string(layer) + ".attn_gate.weight");
    attention.gate = gate && gate->dims[1] == attention.heads ? OutputGate::SoftplusPerHead : OutputGate::SoftplusPerElement;
  });
  mapOptionalExperts(keys, config, {.gating = Gating::Sigmoid, .normalise = true, .selectionBias = true});
}

} // namespace mashbox::model
