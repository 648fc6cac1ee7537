#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::sched {

/// What one running sequence could run next.
struct Demand {
  uint32_t rows;       ///< tokens that have not been run; 0: nothing
  bool decoding;       ///< its one row is the token drawn last
  uint64_t lastServed; ///< the step in which it last had a row
};

struct Grant {
  size_t index; ///< of the demand
  uint32_t rows;
};

/// Prefill chunks are not cut finer than this while the budget allows it.
inline constexpr uint32_t SmallestChunk = 32;

/// Divides the rows of one step: first a row for every decoding sequence, then chunks of equal size for those in prefill, least
/// recently served first; what one of them does not need goes to the others.
std::vector<Grant> planStep(std::span<const Demand> demands, uint32_t budget);

} // namespace mashbox::sched
