#if defined(__x86_64__)

#include "cpu/float_avx2.hpp"

#include "cpu/simd_avx2.hpp"

namespace mashbox::cpu::avx2 {
namespace {

struct F32 {
  static constexpr size_t bytes = 4;
  static __m256 load(const std::byte* at) { return _mm256_loadu_ps(reinterpret_cast<const float*>(at)); }
};

struct F16 {
  static constexpr size_t bytes = 2;
  static __m256 load(const std::byte* at) { return _mm256_cvtph_ps(load128(at)); }
};

struct BF16 {
  static constexpr size_t bytes = 2;
  static __m256 load(const std::byte* at) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(at)), 16)); }
};

/// Adds the products of eight k; a register of weights is dropped before the next half needs one.
template <class Format, int Rows, int Columns>
void accumulate(const std::byte* weights, size_t rowBytes, const float* x, size_t length, __m256 acc[Rows][Columns]) {
  __m256 w[Rows];
  for (int r = 0; r < Rows; ++r) w[r] = Format::load(weights + r * rowBytes);
  for (int c = 0; c < Columns; ++c) {
    const __m256 v = _mm256_loadu_ps(x + c * length);
    for (int r = 0; r < Rows; ++r) acc[r][c] = _mm256_fmadd_ps(w[r], v, acc[r][c]);
  }
}

constexpr size_t PrefetchDistance = 2048;

/// `Rows` weight rows, `apart` rows from each other, against `Columns` activation rows of x, from row m on.
template <class Format, int Rows, int Columns>
void tile(const std::byte* weights, size_t rowBytes, size_t apart, const Activations& x, size_t m, float* out, size_t outStride) {
  const size_t step = apart * rowBytes;
  __m256 low[Rows][Columns], high[Rows][Columns];
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) low[r][c] = high[r][c] = _mm256_setzero_ps();
  const float* column = x.f32 + m * x.length;
  size_t k = 0;
  for (; k + 16 <= x.length; k += 16) {
    const std::byte* at = weights + k * Format::bytes;
    for (int r = 0; r < Rows; ++r) _mm_prefetch(reinterpret_cast<const char*>(at + r * step + PrefetchDistance), _MM_HINT_T0);
    accumulate<Format, Rows, Columns>(at, step, column + k, x.length, low);
    accumulate<Format, Rows, Columns>(at + 8 * Format::bytes, step, column + k + 8, x.length, high);
  }
  if (const size_t rest = x.length - k) {
    constexpr size_t PaddedBytes = 16 * Format::bytes;
    alignas(32) std::byte w[Rows][PaddedBytes] = {};
    alignas(32) float v[Columns][16] = {};
    for (int r = 0; r < Rows; ++r) std::memcpy(w[r], weights + r * step + k * Format::bytes, rest * Format::bytes);
    for (int c = 0; c < Columns; ++c) std::memcpy(v[c], column + c * x.length + k, rest * sizeof(float));
    accumulate<Format, Rows, Columns>(w[0], PaddedBytes, v[0], 16, low);
    accumulate<Format, Rows, Columns>(w[0] + PaddedBytes / 2, PaddedBytes, v[0] + 8, 16, high);
  }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) out[c * outStride + r * apart] = sumLanes(low[r][c], high[r][c]);
}

template <class Format, int Rows> void tileColumns(const std::byte* weights, size_t rowBytes, size_t apart, const Activations& x, float* out, size_t outStride) {
  size_t m = 0;
  for (; m + 2 <= x.rows; m += 2) tile<Format, Rows, 2>(weights, rowBytes, apart, x, m, out + m * outStride, outStride);
  if (m < x.rows) tile<Format, Rows, 1>(weights, rowBytes, apart, x, m, out + m * outStride, outStride);
}

template <class Format> void matmul(const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  // As many streams as a tile has rows, each through its part of them, keep more cache lines on their way than one.
  constexpr int Rows = 3;
  const size_t part = rowCount / Rows;
  for (size_t r = 0; r < part; ++r) tileColumns<Format, Rows>(weights + r * rowBytes, rowBytes, part, x, out + r, outStride);
  for (size_t r = part * Rows; r < rowCount; ++r) tileColumns<Format, 1>(weights + r * rowBytes, rowBytes, 1, x, out + r, outStride);
}

} // namespace

void matmulFloat(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  switch (type) {
  case Type::F32: return matmul<F32>(weights, rowBytes, rowCount, x, out, outStride);
  case Type::F16: return matmul<F16>(weights, rowBytes, rowCount, x, out, outStride);
  case Type::BF16: return matmul<BF16>(weights, rowBytes, rowCount, x, out, outStride);
  default: return scalarKernels.matmulRows(type, weights, rowBytes, rowCount, x, out, outStride);
  }
}

} // namespace mashbox::cpu::avx2

#endif
