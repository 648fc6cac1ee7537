#pragma once

#include "quant/format.hpp"

#include <cstddef>
#include <span>

namespace mashbox::quant {

/// True for F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K.
bool encodable(Type type);

/// Encodes one row by rounding to nearest (no error-minimising search): weights for tests and benchmarks. `values.size()` is a
/// multiple of the block length, all values are finite, and `blocks` has `rowBytes(format(type), values.size())` bytes.
void quantize(Type type, std::span<const float> values, std::byte* blocks);

} // namespace mashbox::quant
