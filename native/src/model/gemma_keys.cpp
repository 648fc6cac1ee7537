#include "model/gemma_keys.hpp"

#include "model/family.hpp"

#include <cmath>

namespace mashbox::model {

void mapGemma(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Halves);
  config.embeddingScale = std::sqrt(static_cast<float>(config.width));
  config.sandwichNorms = true;
  config.logitSoftcap = static_cast<float>(keys.positiveOrOff("final_logit_softcapping"));
  for (LayerConfig& layer : config.layers) layer.activation = Activation::Gelu;
}

} // namespace mashbox::model
