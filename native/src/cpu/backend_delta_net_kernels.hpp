#pragma once

#include "cpu/kernels.hpp"

#include <cstddef>

namespace mashbox::cpu {

/// e^x below this adds nothing to a float32 sum, but denormal products are slow.
inline constexpr float LeastExponent = -80;

/// The inner loops of the gated delta net. All lengths are multiples of 16 floats, but for `inner`, `rows` and `taps`. Every output
/// element is accumulated in one fixed order, whatever stands beside it.
struct DeltaNetKernels {
  /// c[r][n] += Σ_k a[r][k] · b[k][n], one k after the other; the strides are those of rows.
  void (*multiplyAdd)(const float* a, size_t aStride, const float* b, size_t bStride, float* c, size_t cStride, size_t rows, size_t inner, size_t columns);
  /// out[i] = silu(Σ_j taps[j · tapStride + i] · inputs[j][i]) over `count` taps.
  void (*convolve)(const float* const* inputs, const float* taps, size_t tapStride, size_t count, float* out, size_t n);
  /// keysOut[i] = factor · keys[i] · e^(now - decays[i]) and queriesOut[i] = queries[i] · e^(now - decays[i]); exponents below
  /// `LeastExponent` give 0.
  void (*decay)(const double* decays, double now, float factor, const float* keys, const float* queries, float* keysOut, float* queriesOut, size_t n);
  /// into[i] = beta · (value[i] - shown · byKey[i]) and sum[i] = shown · byQuery[i]
  void (*correct)(float beta, float shown, const float* value, const float* byKey, const float* byQuery, float* into, float* sum, size_t n);
  /// out[i] = x[i] · factors[i]
  void (*multiplyEach)(const float* x, const float* factors, float* out, size_t n);
  /// x[i] = x[i] · factor
  void (*scale)(float factor, float* x, size_t n);
  /// x[i] = x[i] · factor / √(Σx² + epsilon)
  void (*normalise)(float factor, float epsilon, float* x, size_t n);
  /// out[i] = x[i] / √(mean(x²) + epsilon) · norm[i] · silu(gate[i])
  void (*gatedNorm)(const float* x, float epsilon, const float* norm, const float* gate, float* out, size_t n);
  /// columns[d · columnStride + i] = rows[i · rowStride + d] for i below `count`, d below `n`.
  void (*transpose)(const float* rows, size_t rowStride, size_t count, size_t n, float* columns, size_t columnStride);
};

const DeltaNetKernels& deltaNetKernels(Isa isa);

extern const DeltaNetKernels scalarDeltaNet;
#if defined(__x86_64__)
extern const DeltaNetKernels avx2DeltaNet, avx512DeltaNet;
#endif

} // namespace mashbox::cpu
