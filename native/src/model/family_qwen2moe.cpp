#include "model/experts_keys.hpp"
#include "model/family.hpp"

namespace mashbox::model {

/// Qwen1.5-MoE and Qwen2-MoE: Qwen2's attention, experts whose weights are not normalised, and a shared expert with a gate.
void mapQwen2Moe(Keys& keys, Config& config) {
  mapQwen2(keys, config);
  mapExperts(keys, config, {.sharedGate = true});
}

} // namespace mashbox::model
