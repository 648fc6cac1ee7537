#pragma once

#include "model/config.hpp"
#include "model/model.hpp"

#include <cstdint>

namespace mashbox::model {

/// The longest context of a slot that is taken without being asked for.
inline constexpr uint32_t DefaultContext = 32768;

/// `blockBytes`: of one KV block over all layers; `stateBytes`: of one recurrent state. A tenth of `available` is left to others.
MemoryPlan planMemory(const Config& config, const ContextOptions& options, uint64_t weights, uint64_t blockBytes, uint64_t available, uint64_t stateBytes = 0);

bool fits(const MemoryPlan& plan);
/// OutOfMemory, with what would fit.
Error doesNotFit(const MemoryPlan& plan, const ContextOptions& options);

/// Blocks that hold `tokens`.
uint64_t blocksFor(uint64_t tokens);

} // namespace mashbox::model
