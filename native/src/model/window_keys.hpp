#pragma once

#include "model/config.hpp"
#include "model/keys.hpp"

#include <functional>
#include <vector>

namespace mashbox::model {

/// The layers whose attention looks back over `attention.sliding_window` tokens only. `attention.sliding_window_pattern` says which, by a
/// flag per layer or by a period p (all but every p-th); without it `sliding` does. Sets their window, which is
/// `fallback` without the key; no layer slides without a window.
std::vector<bool> mapWindows(Keys& keys, Config& config, const std::function<bool(uint32_t layer)>& sliding, uint32_t fallback = 0);

/// Gives those layers their own rope: `rope.freq_base_swa` (else `base`), `rope.dimension_count_swa`, no scaling.
void mapSlidingRope(Keys& keys, Config& config, const std::vector<bool>& sliding, double base);

} // namespace mashbox::model
