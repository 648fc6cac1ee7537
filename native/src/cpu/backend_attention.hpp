#pragma once

#include "cpu/kernels.hpp"
#include "kv/block_pool.hpp"

#include <cstddef>

namespace mashbox::cpu {

/// The inner products of attention over one KV block of 32 tokens, for several queries that see the same tokens. Keys are stored
/// [length][32 tokens], so that lanes are tokens; values are stored [32 tokens][stride]. What one query gets does not depend on
/// the others.
struct AttentionKernels {
  /// scores[i][t] = Σ_d queries[i][d] · keys[d][t]; scores are `count` × 32.
  void (*scores)(const float* const* queries, size_t count, const void* keys, size_t length, float* scores);
  /// scores[t] → exp(scale · scores[t] − max) for first ≤ t < tokens, 0 elsewhere; `max` rises to the largest scaled score.
  /// Returns the sum of the results.
  float (*weigh)(float* scores, size_t first, size_t tokens, float scale, float* max);
  /// sums[i][v] += Σ_{t < tokens} weights[i][t] · values[t][v]; `stride` is a multiple of 16.
  void (*accumulate)(const float* weights, size_t count, size_t tokens, const void* values, size_t stride, float* const* sums);
};

/// Kernels over a cache of binary16 (`half`) or float32.
const AttentionKernels& attentionKernels(Isa isa, bool half);

extern const AttentionKernels scalarAttentionF16, scalarAttentionF32;
#if defined(__x86_64__)
extern const AttentionKernels avx2AttentionF16, avx2AttentionF32, avx512AttentionF16, avx512AttentionF32;
#endif

} // namespace mashbox::cpu
