#include "model/experts_keys.hpp"
#include "model/family.hpp"

namespace mashbox::model {

/// Llama 2 and 3, Mistral, SmolLM2, Mixtral: the converter permuted Q and K so that adjacent values turn together.
void mapLlama(Keys& keys, Config& config) {
  mapTransformer(keys, config, RopePairing::Adjacent);
  mapOptionalExperts(keys, config, {.normalise = true});
}

} // namespace mashbox::model
