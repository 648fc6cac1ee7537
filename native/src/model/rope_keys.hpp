#pragma once

#include "model/config.hpp"
#include "model/keys.hpp"

#include <string_view>

namespace mashbox::model {

/// Most values of one head.
inline constexpr uint32_t MostHeadLength = 1 << 12;

/// Values of a head that turn: an even number of at most `keyLength`, which they are without the key.
uint32_t readDims(Keys& keys, std::string_view key, uint32_t keyLength);
/// The rope keys of layers without a window, for heads of the first layer's key length.
Rope readRope(Keys& keys, const Config& config, RopePairing pairing);
/// Those of sliding layers (rope.dimension_count_swa, rope.freq_base_swa), for heads of `keyLength` values; never scaled.
Rope readSlidingRope(Keys& keys, uint32_t keyLength, double base, RopePairing pairing);

} // namespace mashbox::model
