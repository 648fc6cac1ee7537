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

/// Sixteen values, two registers of lanes.
struct Lanes {
  __m256 low, high;
};

template <class Format> Lanes loadLanes(const std::byte* at) { return {Format::load(at), Format::load(at + 8 * Format::bytes)}; }
template <class Format> Lanes loadLanes(const std::byte* at, size_t count) {
  alignas(32) std::byte padded[16 * Format::bytes] = {};
  std::memcpy(padded, at, count * Format::bytes);
  return loadLanes<Format>(padded);
}

/// `Rows` weight rows against `Columns` activation rows of x, from column m on; `ahead` is the prefetch distance.
template <class Format, int Rows, int Columns>
void tile(const std::byte* weights, size_t rowBytes, const Activations& x, size_t m, float* out, size_t outStride, size_t ahead) {
  Lanes acc[Rows][Columns];
  for (auto& row : acc)
    for (Lanes& a : row) a = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  const float* column = x.f32 + m * x.length;
  const auto accumulate = [&](const Lanes* w, int c, Lanes v) {
    for (int r = 0; r < Rows; ++r) {
      acc[r][c].low = _mm256_fmadd_ps(w[r].low, v.low, acc[r][c].low);
      acc[r][c].high = _mm256_fmadd_ps(w[r].high, v.high, acc[r][c].high);
    }
  };
  size_t k = 0;
  for (; k + 16 <= x.length; k += 16) {
    Lanes w[Rows];
    for (int r = 0; r < Rows; ++r) {
      const std::byte* at = weights + r * rowBytes + k * Format::bytes;
      _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T0);
      w[r] = loadLanes<Format>(at);
    }
    for (int c = 0; c < Columns; ++c) accumulate(w, c, loadLanes<F32>(reinterpret_cast<const std::byte*>(column + c * x.length + k)));
  }
  if (const size_t rest = x.length - k) {
    Lanes w[Rows];
    for (int r = 0; r < Rows; ++r) w[r] = loadLanes<Format>(weights + r * rowBytes + k * Format::bytes, rest);
    for (int c = 0; c < Columns; ++c) accumulate(w, c, loadLanes<F32>(reinterpret_cast<const std::byte*>(column + c * x.length + k), rest));
  }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) out[c * outStride + r] = sumLanes(acc[r][c].low, acc[r][c].high);
}

template <class Format, int Rows> void tileColumns(const std::byte* weights, size_t rowBytes, const Activations& x, float* out, size_t outStride, size_t ahead) {
  size_t m = 0;
  for (; m + 2 <= x.rows; m += 2) tile<Format, Rows, 2>(weights, rowBytes, x, m, out + m * outStride, outStride, ahead);
  if (m < x.rows) tile<Format, Rows, 1>(weights, rowBytes, x, m, out + m * outStride, outStride, ahead);
}

template <class Format> void matmul(const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  constexpr int Rows = 3;
  const size_t tileBytes = Rows * rowBytes;
  const size_t ahead = tileBytes < 8192 ? (8192 + tileBytes - 1) / tileBytes * tileBytes : 2048;
  size_t r = 0;
  for (; r + Rows <= rowCount; r += Rows) tileColumns<Format, Rows>(weights + r * rowBytes, rowBytes, x, out + r, outStride, ahead);
  for (; r < rowCount; ++r) tileColumns<Format, 1>(weights + r * rowBytes, rowBytes, x, out + r, outStride, ahead);
}

void matmulDequantized(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t floatBytes = x.length * sizeof(float);
  std::byte* rows = threadScratch(3 * floatBytes);
  for (size_t r = 0; r < rowCount; r += 3) {
    const size_t count = rowCount - r < 3 ? rowCount - r : 3;
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

} // namespace mashbox::cpu::avx2

#endif
