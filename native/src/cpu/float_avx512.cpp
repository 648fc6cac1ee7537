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

constexpr size_t PrefetchDistance = 2048;

/// `Rows` weight rows, `apart` rows from each other, against `Columns` activation rows of x, from row m on.
template <class Format, int Rows, int Columns>
void tile(const std::byte* weights, size_t rowBytes, size_t apart, const Activations& x, size_t m, float* out, size_t outStride) {
  const size_t step = apart * rowBytes;
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
      const std::byte* at = weights + r * step + k * Format::bytes;
      _mm_prefetch(reinterpret_cast<const char*>(at + PrefetchDistance), _MM_HINT_T0);
      w[r] = Format::load(at);
    }
    accumulate(w, v);
  }
  if (const size_t rest = x.length - k) {
    const __mmask16 lanes = firstLanes(rest);
    __m512 w[Rows], v[Columns];
    for (int c = 0; c < Columns; ++c) v[c] = _mm512_maskz_loadu_ps(lanes, column + c * x.length + k);
    for (int r = 0; r < Rows; ++r) w[r] = Format::load(weights + r * step + k * Format::bytes, lanes);
    accumulate(w, v);
  }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) out[c * outStride + r * apart] = sumLanes(acc[r][c]);
}

template <class Format, int Rows> void tileColumns(const std::byte* weights, size_t rowBytes, size_t apart, const Activations& x, float* out, size_t outStride) {
  size_t m = 0;
  for (; m + 4 <= x.rows; m += 4) tile<Format, Rows, 4>(weights, rowBytes, apart, x, m, out + m * outStride, outStride);
  float* rest = out + m * outStride;
  switch (x.rows - m) {
  case 3: return tile<Format, Rows, 3>(weights, rowBytes, apart, x, m, rest, outStride);
  case 2: return tile<Format, Rows, 2>(weights, rowBytes, apart, x, m, rest, outStride);
  case 1: return tile<Format, Rows, 1>(weights, rowBytes, apart, x, m, rest, outStride);
  default: return;
  }
}

template <class Format> void matmulTiles(const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  // As many streams as a tile has rows, each through its part of them, keep more cache lines on their way than one.
  constexpr int Rows = 4;
  const size_t part = rowCount / Rows;
  for (size_t r = 0; r < part; ++r) tileColumns<Format, Rows>(weights + r * rowBytes, rowBytes, part, x, out + r, outStride);
  for (size_t r = part * Rows; r < rowCount; ++r) tileColumns<Format, 1>(weights + r * rowBytes, rowBytes, 1, x, out + r, outStride);
}

/// The matrix kernel runs the sixteen lanes of tiers.hpp one after the other, in the order in which they are added up.
constexpr size_t Lanes = 16, PanelRows = 16, TileColumns = 16;
constexpr unsigned LaneOrder[Lanes] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
/// Bytes of laid-out activation rows that should stay in the second-level cache.
constexpr size_t PassBytes = size_t{1} << 20;

size_t groupsOf(size_t length) { return (length + Lanes - 1) / Lanes; }
/// Registers from one lane's first group to the next lane's: odd, so that they fall into different sets of the first-level cache.
size_t laneStride(size_t length) { return groupsOf(length) | 1; }

/// Sixteen rows (weights or activations), one k: the lane of a row is its number. Stored lane by lane, k rising within.
/// Missing rows and the k beyond `length` are zero.
template <class Format> void layOut(const std::byte* rows, size_t rowBytes, size_t count, size_t length, __m512* to) {
  alignas(64) float halves[2][PanelRows][8] = {};
  const size_t groups = groupsOf(length), stride = laneStride(length);
  for (size_t g = 0; g < groups; ++g) {
    const __mmask16 present = length - g * Lanes < Lanes ? firstLanes(length - g * Lanes) : __mmask16(0xffff);
    for (size_t r = 0; r < count; ++r) {
      const std::byte* at = rows + r * rowBytes + g * Lanes * Format::bytes;
      _mm_prefetch(reinterpret_cast<const char*>(at + PanelRows * rowBytes), _MM_HINT_T1);
      const __m512 values = Format::load(at, present);
      _mm256_store_ps(halves[0][r], _mm512_castps512_ps256(values));
      _mm256_store_ps(halves[1][r], _mm512_extractf32x8_ps(values, 1));
    }
    __m512i column[Lanes];
    for (int h = 0; h < 2; ++h) transpose16x8(halves[h], column + 8 * h);
    for (unsigned j = 0; j < Lanes; ++j) to[j * stride + g] = _mm512_castsi512_ps(column[LaneOrder[j]]);
  }
}

/// Sixteen weight rows against activation rows [c0, c0 + Columns) of a tile.
template <int Columns> void multiplyPanel(const __m512* panel, const __m512* x, size_t c0, size_t length, float* out, size_t outStride, __mmask16 rows) {
  const size_t groups = groupsOf(length), stride = laneStride(length);
  __m512 pending[4][Columns];
  const auto* values = reinterpret_cast<const float(*)[TileColumns]>(x);
  for (unsigned j = 0; j < Lanes; ++j) {
    __m512 acc[Columns];
    for (__m512& a : acc) a = _mm512_setzero_ps();
    for (size_t g = j * stride; g < j * stride + groups; ++g)
      for (int c = 0; c < Columns; ++c) acc[c] = _mm512_fmadd_ps(panel[g], _mm512_set1_ps(values[g][c0 + c]), acc[c]);
    // Each finished lane joins those of its subtree.
    for (int c = 0; c < Columns; ++c) {
      unsigned level = 0;
      for (unsigned n = j; n & 1; n >>= 1, ++level) acc[c] = _mm512_add_ps(pending[level][c], acc[c]);
      if (j < Lanes - 1) pending[level][c] = acc[c];
      else _mm512_mask_storeu_ps(out + c * outStride, rows, acc[c]);
    }
  }
}

void multiplyTile(const __m512* panel, const __m512* x, size_t columns, size_t length, float* out, size_t outStride, __mmask16 rows) {
  size_t c = 0;
  const auto multiply = [&]<int Columns>() {
    multiplyPanel<Columns>(panel, x, c, length, out + c * outStride, outStride, rows);
    c += Columns;
  };
  if (c + 16 <= columns) multiply.template operator()<16>();
  if (c + 8 <= columns) multiply.template operator()<8>();
  if (c + 4 <= columns) multiply.template operator()<4>();
  if (c + 2 <= columns) multiply.template operator()<2>();
  if (c < columns) multiply.template operator()<1>();
}

template <class Format> void matmulPanels(const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t padded = laneStride(x.length) * Lanes, floatBytes = x.length * sizeof(float);
  const size_t tiles = (x.rows + TileColumns - 1) / TileColumns, fit = PassBytes / (padded * sizeof(__m512));
  const size_t passTiles = fit == 0 ? 1 : fit < tiles ? fit : tiles, pass = passTiles * TileColumns;
  auto* panel = reinterpret_cast<__m512*>(threadScratch((1 + passTiles) * padded * sizeof(__m512)));
  __m512* columns = panel + padded;
  for (size_t begin = 0; begin < x.rows; begin += pass) {
    const size_t end = begin + pass < x.rows ? begin + pass : x.rows;
    const auto count = [&](size_t m) { return end - m < TileColumns ? end - m : TileColumns; };
    for (size_t m = begin; m < end; m += TileColumns)
      layOut<F32>(reinterpret_cast<const std::byte*>(x.f32 + m * x.length), floatBytes, count(m), x.length, columns + (m - begin) / TileColumns * padded);
    for (size_t r = 0; r < rowCount; r += PanelRows) {
      const size_t rows = rowCount - r < PanelRows ? rowCount - r : PanelRows;
      layOut<Format>(weights + r * rowBytes, rowBytes, rows, x.length, panel);
      for (size_t m = begin; m < end; m += TileColumns)
        multiplyTile(panel, columns + (m - begin) / TileColumns * padded, count(m), x.length, out + m * outStride + r, outStride, firstLanes(rows));
    }
  }
}

/// Laying sixteen weight rows out for the matrix kernel pays from about two dozen activation rows on.
template <class Format> void matmul(const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  (x.rows < 24 ? matmulTiles<Format> : matmulPanels<Format>)(weights, rowBytes, rowCount, x, out, outStride);
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

} // namespace mashbox::cpu::avx512

#endif
