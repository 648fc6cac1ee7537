#if defined(__x86_64__)

#include "cpu/float_avx512.hpp"

#include "cpu/simd_avx512.hpp"

namespace mashbox::cpu::avx512 {
namespace {

struct F32 {
  static constexpr size_t bytes = 4;
  static __m512 load(const std::byte* at) { return _mm512_loadu_ps(at); }
  static __m512 load(const std::byte* at, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, at); }
};

struct F16 {
  static constexpr size_t bytes = 2;
  static __m512 load(const std::byte* at) { return _mm512_cvtph_ps(load256(at)); }
  static __m512 load(const std::byte* at, __mmask16 lanes) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, at)); }
};

struct BF16 {
  static constexpr size_t bytes = 2;
  static __m512 widen(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
  static __m512 load(const std::byte* at) { return widen(load256(at)); }
  static __m512 load(const std::byte* at, __mmask16 lanes) { return widen(_mm256_maskz_loadu_epi16(lanes, at)); }
};

/// `Rows` weight rows against `Columns` activation rows of x, from column m on; `ahead` is the prefetch distance.
template <class Format, int Rows, int Columns>
void tile(const std::byte* weights, size_t rowBytes, const Activations& x, size_t m, float* out, size_t outStride, size_t ahead) {
  __m512 acc[Rows][Columns];
  for (auto& row : acc)
    for (__m512& a : row) a = _mm512_setzero_ps();
  const float* column = x.f32 + m * x.length;
  const auto accumulate = [&](const __m512* w, const __m512* v) {
    for (int r = 0; r < Rows; ++r)
      for (int c = 0; c < Columns; ++c) acc[r][c] = _mm512_fmadd_ps(w[r], v[c], acc[r][c]);
  };
  size_t k = 0;
  for (; k + 16 <= x.length; k += 16) {
    __m512 w[Rows], v[Columns];
    for (int c = 0; c < Columns; ++c) v[c] = _mm512_loadu_ps(column + c * x.length + k);
    for (int r = 0; r < Rows; ++r) {
      const std::byte* at = weights + r * rowBytes + k * Format::bytes;
      _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T0);
      w[r] = Format::load(at);
    }
    accumulate(w, v);
  }
  if (const size_t rest = x.length - k) {
    const __mmask16 lanes = firstLanes(rest);
    __m512 w[Rows], v[Columns];
    for (int c = 0; c < Columns; ++c) v[c] = _mm512_maskz_loadu_ps(lanes, column + c * x.length + k);
    for (int r = 0; r < Rows; ++r) w[r] = Format::load(weights + r * rowBytes + k * Format::bytes, lanes);
    accumulate(w, v);
  }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) out[c * outStride + r] = sumLanes(acc[r][c]);
}

template <class Format, int Rows> void tileColumns(const std::byte* weights, size_t rowBytes, const Activations& x, float* out, size_t outStride, size_t ahead) {
  size_t m = 0;
  for (; m + 4 <= x.rows; m += 4) tile<Format, Rows, 4>(weights, rowBytes, x, m, out + m * outStride, outStride, ahead);
  float* rest = out + m * outStride;
  switch (x.rows - m) {
  case 3: return tile<Format, Rows, 3>(weights, rowBytes, x, m, rest, outStride, ahead);
  case 2: return tile<Format, Rows, 2>(weights, rowBytes, x, m, rest, outStride, ahead);
  case 1: return tile<Format, Rows, 1>(weights, rowBytes, x, m, rest, outStride, ahead);
  default: return;
  }
}

template <class Format> void matmul(const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t tileBytes = 4 * rowBytes;
  const size_t ahead = tileBytes < 8192 ? (8192 + tileBytes - 1) / tileBytes * tileBytes : 2048;
  size_t r = 0;
  for (; r + 4 <= rowCount; r += 4) tileColumns<Format, 4>(weights + r * rowBytes, rowBytes, x, out + r, outStride, ahead);
  for (; r < rowCount; ++r) tileColumns<Format, 1>(weights + r * rowBytes, rowBytes, x, out + r, outStride, ahead);
}

void matmulDequantized(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t floatBytes = x.length * sizeof(float);
  std::byte* rows = threadScratch(4 * floatBytes);
  for (size_t r = 0; r < rowCount; r += 4) {
    const size_t count = rowCount - r < 4 ? rowCount - r : 4;
    for (size_t i = 0; i < count; ++i) dequantizeRow(type, weights + (r + i) * rowBytes, reinterpret_cast<float*>(rows + i * floatBytes), x.length);
    matmul<F32>(rows, floatBytes, count, x, out + r, outStride);
  }
}

} // namespace

void matmulFloat(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  switch (type) {
  case Type::F32: return matmul<F32>(weights, rowBytes, rowCount, x, out, outStride);
  case Type::F16: return matmul<F16>(weights, rowBytes, rowCount, x, out, outStride);
  case Type::BF16: return matmul<BF16>(weights, rowBytes, rowCount, x, out, outStride);
  default: return matmulDequantized(type, weights, rowBytes, rowCount, x, out, outStride);
  }
}

} // namespace mashbox::cpu::avx512

#endif
