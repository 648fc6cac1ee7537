#pragma once

#include "cpu/kernels.hpp"

#include <cstddef>

namespace mashbox::cpu {

/// The inner loops of the gated delta net. All lengths are multiples of 16 floats, but for `inner`, `rows` and `taps`. Every output
/// element is accumulated in one fixed order, whatever stands beside it.
struct DeltaNetKernels {
  /// c[r][n] += Σ_k a[r][k] · b[k][n], one k after the other; the strides are those of rows.
  void (*multiplyAdd)(const float* a, size_t aStride, const float* b, size_t bStride, float* c, size_t cStride, size_t rows, size_t inner, size_t columns);
  /// out[i] = silu(Σ_j taps[j · tapStride + i] · inputs[j][i]) over `count` taps.
  void (*convolve)(const float* const* inputs, const float* taps, size_t tapStride, size_t count, float* out, size_t n);
  /// keys[i] = factor · keys[i] · e^exponents[i] and queries[i] = queries[i] · e^exponents[i]
  void (*decay)(const float* exponents, float factor, float* keys, float* queries, size_t n);
};

const DeltaNetKernels& deltaNetKernels(Isa isa);

extern const DeltaNetKernels scalarDeltaNet;
#if defined(__x86_64__)
extern const DeltaNetKernels avx2DeltaNet, avx512DeltaNet;
#endif

} // namespace mashbox::cpu
