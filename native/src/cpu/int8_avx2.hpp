#pragma once

#include "cpu/tiers.hpp"

namespace mashbox::cpu::avx2 {

/// The 8-bit products of the formats that `usesInt8` names.
void matmulInt8(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride);

} // namespace mashbox::cpu::avx2
