#include "model/experts_keys.hpp"
#include "model/family.hpp"

namespace mashbox::model {

/// Qwen3-MoE: Qwen3's attention and normalised experts.
void mapQwen3Moe(Keys& keys, Config& config) {
  mapQwen3(keys, config);
  mapExperts(keys, config, {.normalise = true});
}

} // namespace mashbox::model
