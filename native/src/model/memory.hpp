#pragma once

#include "model/config.hpp"
#include "model/model.hpp"

#include <cstdint>

namespace mashbox::model {

/// The longest context of a slot that is taken without being asked for.
inline constexpr uint32_t DefaultContext = 32768;

/// `stateBytes`: of one recurrent state. A slot's window blocks hold the window and one step's rows, if the context is not shorter. A tenth
/// of `available` is left to others.
MemoryPlan planMemory(const Config& config, const ContextOptions& options, uint64_t weights, BlockBytes blockBytes, uint64_t available, uint64_t stateBytes = 0);

bool fits(const MemoryPlan& plan);
/// OutOfMemory, with what would fit.
Error doesNotFit(const MemoryPlan& plan, const ContextOptions& options);

} // namespace mashbox::model
