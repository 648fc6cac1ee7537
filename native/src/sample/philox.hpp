#pragma once

#include <array>
#include <cstdint>

namespace mashbox::sample {

/// Philox 4x32-10, a counter-based random function (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Uniform in [0, 1) with 53 random bits, a function of its arguments alone.
double uniform(uint64_t seed, uint64_t index);

} // namespace mashbox::sample
