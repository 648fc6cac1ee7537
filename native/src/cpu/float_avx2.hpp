#pragma once

#include "cpu/tiers.hpp"

namespace mashbox::cpu::avx2 {

/// F32, F16 and BF16 rows against float activations; any other decodable type goes through `dequantizeRow`.
void matmulFloat(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride);

} // namespace mashbox::cpu::avx2
