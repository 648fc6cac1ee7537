#include "model/experts_keys.hpp"
#include "model/family.hpp"

namespace mashbox::model {

/// Qwen3.5-MoE: Qwen3.5 with normalised experts and a gated one that always runs.
void mapQwen35Moe(Keys& keys, Config& config) {
  mapQwen35(keys, config);
  mapExperts(keys, config, {.normalise = true, .sharedGate = true});
}

} // namespace mashbox::model
