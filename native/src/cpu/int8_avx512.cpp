#if defined(__x86_64__)

#include "cpu/int8_avx512.hpp"

#include "cpu/int8_blocks_avx512.hpp"

namespace mashbox::cpu::avx512 {
namespace {

constexpr size_t PanelRows = 16;
/// From this many activation rows on, laying sixteen weight rows out for the matrix kernel pays.
constexpr size_t PanelThreshold = 8;

/// One activation row's 8-bit form.
struct Column {
  const int8_t* q;
  const float* scale;
  const int16_t* sum16;
  float* out;
};

Column column(const Activations& x, size_t m, float* out, size_t outStride) {
  return {x.q + m * x.length, x.scale + m * (x.length / 32), x.sum16 + m * (x.length / 16), out + m * outStride};
}

/// Adds up eight registers of two rows' partial sums: [first row: one lane per block | second row].
template <bool Factors> __m512i reduce(const __m512i p[8], const Group& group) {
  __m512i quarter[2];
  for (int i = 0; i < 2; ++i) {
    const __m512i* x = p + 4 * i;
    const __m512i left = _mm512_add_epi32(_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[0], x[1]));
    const __m512i right = _mm512_add_epi32(_mm512_unpacklo_epi32(x[2], x[3]), _mm512_unpackhi_epi32(x[2], x[3]));
    quarter[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(left, right), _mm512_unpackhi_epi64(left, right));
    if constexpr (Factors) quarter[i] = _mm512_mullo_epi32(quarter[i], group.factors[i]);
  }
  const __m512i a = _mm512_permutex2var_epi64(quarter[0], _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), quarter[1]);
  const __m512i b = _mm512_permutex2var_epi64(quarter[0], _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), quarter[1]);
  return _mm512_add_epi32(a, b);
}

/// One group of blocks of two rows against one activation row.
template <class Format, bool Full> __m512 step(__m512 acc, const Group& group, const int8_t* q, const float* scale, const int16_t* sum16, unsigned count) {
  __m512i p[8];
  for (unsigned b = 0; b < 8; ++b) {
    p[b] = _mm512_setzero_si512();
    if (Full || b < count) p[b] = _mm512_dpbusd_epi32(p[b], group.code[b], twice256(q + 32 * b));
  }
  __m512i sum = reduce<Format::hasFactors>(p, group);
  const __m512i sums = Full ? twice256(sum16) : _mm512_broadcast_i64x4(_mm256_maskz_loadu_epi16(__mmask16((1u << 2 * count) - 1), sum16));
  const __m512 a = _mm512_broadcast_f32x8(Full ? _mm256_loadu_ps(scale) : _mm256_maskz_loadu_ps(__mmask8((1u << count) - 1), scale));
  if constexpr (Format::hasFactors)
    sum = _mm512_sub_epi32(sum, _mm512_slli_epi32(_mm512_madd_epi16(sums, group.factors16), 5));
  else if constexpr (Format::offset != 0)
    sum = _mm512_sub_epi32(sum, _mm512_madd_epi16(sums, _mm512_set1_epi16(Format::offset)));
  acc = _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(group.scale, a), _mm512_cvtepi32_ps(sum)));
  if constexpr (Format::hasMin) {
    const __m512 total = _mm512_cvtepi32_ps(_mm512_madd_epi16(sums, _mm512_set1_epi16(1)));
    acc = _mm512_add_ps(acc, _mm512_mul_ps(group.min, _mm512_mul_ps(a, total)));
  }
  return acc;
}

/// Two weight rows (`second` bytes apart) against `Columns` activation rows; `ahead` is the prefetch distance.
template <class Format, int Columns> void dotPair(const uint8_t* row, ptrdiff_t second, size_t blocks, const Column* x, size_t r, size_t ahead) {
  __m512 acc[Columns];
  for (__m512& a : acc) a = _mm512_setzero_ps();
  Group group;
  size_t b = 0;
  for (; b + 8 <= blocks; b += 8, row += Format::groupBytes) {
    for (size_t line = 0; line < Format::groupBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(row + ahead + line), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(row + second + ahead + line), _MM_HINT_T0);
    }
    loadBlocks<Format>(row, second, 8, group);
    for (int c = 0; c < Columns; ++c) acc[c] = step<Format, true>(acc[c], group, x[c].q + 32 * b, x[c].scale + b, x[c].sum16 + 2 * b, 8);
  }
  if (const unsigned rest = unsigned(blocks - b)) {
    loadBlocks<Format>(row, second, rest, group);
    for (int c = 0; c < Columns; ++c) acc[c] = step<Format, false>(acc[c], group, x[c].q + 32 * b, x[c].scale + b, x[c].sum16 + 2 * b, rest);
  }
  for (int c = 0; c < Columns; ++c) {
    const __m512 sum = sumHalves(acc[c]);
    x[c].out[r] = _mm512_cvtss_f32(sum);
    if (second) x[c].out[r + 1] = _mm_cvtss_f32(_mm512_extractf32x4_ps(sum, 2));
  }
}

template <class Format, int Columns>
void matmulPairs(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, size_t firstColumn, float* out, size_t outStride) {
  Column columns[Columns];
  for (int c = 0; c < Columns; ++c) columns[c] = column(x, firstColumn + c, out, outStride);
  const size_t pairBytes = 2 * rowBytes;
  const size_t ahead = pairBytes < 4096 ? (4096 + pairBytes - 1) / pairBytes * pairBytes : 4096;
  for (size_t r = 0; r < rowCount; r += 2)
    dotPair<Format, Columns>(weights + r * rowBytes, r + 1 < rowCount ? ptrdiff_t(rowBytes) : 0, x.length / 32, columns, r, ahead);
}

/// Sixteen weight rows of one 32-value block, lanes = rows; the matrix kernel's diet.
struct PanelBlock {
  __m512i code[8]; ///< four consecutive k per lane
  __m512 scale, min;
  __m512i factors[2];
};

/// Panel blocks are stored in the order in which the lanes of tiers.hpp are added up.
constexpr unsigned LaneOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};

/// Lays out rows [0, rows) of `weights`; the missing ones of sixteen repeat the last. `panel` has room for each lane's `groups` blocks.
template <class Format> void pack(const uint8_t* weights, size_t rowBytes, size_t rows, size_t blocks, PanelBlock* panel) {
  alignas(64) uint8_t codes[8][PanelRows][32];
  alignas(64) float scales[PanelRows][8], mins[PanelRows][8];
  alignas(64) int32_t factors[2][PanelRows][8];
  const size_t groups = (blocks + 7) / 8;
  for (size_t g = 0; g < groups; ++g) {
    const unsigned count = unsigned(blocks - 8 * g < 8 ? blocks - 8 * g : 8);
    for (size_t r = 0; r < PanelRows; r += 2) {
      const size_t first = r < rows ? r : rows - 1, second = r + 1 < rows ? r + 1 : rows - 1;
      const uint8_t* row = weights + first * rowBytes + g * Format::groupBytes;
      Group group;
      loadBlocks<Format>(row, ptrdiff_t((second - first) * rowBytes), count, group);
      for (unsigned b = 0; b < count; ++b) _mm512_store_si512(codes[b][r], group.code[b]);
      _mm512_store_ps(scales[r], group.scale);
      if constexpr (Format::hasMin) _mm512_store_ps(mins[r], group.min);
      if constexpr (Format::hasFactors) {
        // Words of a block are its two halves' factors: sign-extend the even ones, shift the odd ones down.
        _mm512_store_si512(factors[0][r], _mm512_srai_epi32(_mm512_slli_epi32(group.factors16, 16), 16));
        _mm512_store_si512(factors[1][r], _mm512_srai_epi32(group.factors16, 16));
      }
    }
    __m512i scale[8], min[8], factor[2][8];
    transpose16x8(scales, scale);
    if constexpr (Format::hasMin) transpose16x8(mins, min);
    if constexpr (Format::hasFactors)
      for (int h = 0; h < 2; ++h) transpose16x8(factors[h], factor[h]);
    for (unsigned j = 0; j < 8; ++j) {
      const unsigned b = LaneOrder[j];
      if (b >= count) continue;
      PanelBlock& block = panel[j * groups + g];
      transpose16x8(codes[b], block.code);
      block.scale = _mm512_castsi512_ps(scale[b]);
      if constexpr (Format::hasMin) block.min = _mm512_castsi512_ps(min[b]);
      if constexpr (Format::hasFactors)
        for (int h = 0; h < 2; ++h) block.factors[h] = factor[h][b];
    }
  }
}

/// What the matrix kernel reads of an activation row besides its codes: per block (per half block with factors) the correction for
/// the codes' offset, and the scaled sum for minimums.
struct Corrections {
  int32_t* offset;
  float* sum;
};

template <class Format> size_t correctionWords(size_t blocks) { return Format::hasFactors ? 2 * blocks : blocks; }

template <class Format> void prepare(const Column& x, size_t blocks, Corrections to) {
  for (size_t b = 0; b < blocks; ++b) {
    const int32_t first = x.sum16[2 * b], second = x.sum16[2 * b + 1];
    if constexpr (Format::hasFactors) {
      to.offset[2 * b] = -Format::offset * first;
      to.offset[2 * b + 1] = -Format::offset * second;
    } else {
      to.offset[b] = -Format::offset * (first + second);
    }
    if constexpr (Format::hasMin) to.sum[b] = x.scale[b] * float(first + second);
  }
}

inline __m512i broadcastWord(const int8_t* at) {
  int32_t word;
  std::memcpy(&word, at, sizeof word);
  return _mm512_set1_epi32(word);
}

/// Sixteen weight rows against `Columns` activation rows.
template <class Format, int Columns> void multiplyPanel(const PanelBlock* panel, size_t blocks, const Column* x, const Corrections* corrections, size_t r, __mmask16 rows) {
  const size_t groups = (blocks + 7) / 8;
  __m512 pending[3][Columns];
  for (unsigned j = 0; j < 8; ++j) {
    __m512 acc[Columns];
    for (__m512& a : acc) a = _mm512_setzero_ps();
    const PanelBlock* block = panel + j * groups;
    for (size_t b = LaneOrder[j]; b < blocks; b += 8, ++block) {
      __m512i sum[Columns];
      if constexpr (Format::hasFactors) {
        for (int h = 0; h < 2; ++h) {
          __m512i half[Columns];
          for (int c = 0; c < Columns; ++c) half[c] = _mm512_set1_epi32(corrections[c].offset[2 * b + h]);
          for (int k = 4 * h; k < 4 * h + 4; ++k)
            for (int c = 0; c < Columns; ++c) half[c] = _mm512_dpbusd_epi32(half[c], block->code[k], broadcastWord(x[c].q + 32 * b + 4 * k));
          for (int c = 0; c < Columns; ++c) {
            half[c] = _mm512_mullo_epi32(half[c], block->factors[h]);
            sum[c] = h == 0 ? half[c] : _mm512_add_epi32(sum[c], half[c]);
          }
        }
      } else {
        for (int c = 0; c < Columns; ++c) sum[c] = _mm512_set1_epi32(corrections[c].offset[b]);
        for (int k = 0; k < 8; ++k)
          for (int c = 0; c < Columns; ++c) sum[c] = _mm512_dpbusd_epi32(sum[c], block->code[k], broadcastWord(x[c].q + 32 * b + 4 * k));
      }
      for (int c = 0; c < Columns; ++c) {
        const __m512 scale = _mm512_mul_ps(block->scale, _mm512_set1_ps(x[c].scale[b]));
        acc[c] = _mm512_add_ps(acc[c], _mm512_mul_ps(scale, _mm512_cvtepi32_ps(sum[c])));
        if constexpr (Format::hasMin) acc[c] = _mm512_add_ps(acc[c], _mm512_mul_ps(block->min, _mm512_set1_ps(corrections[c].sum[b])));
      }
    }
    // Each finished lane joins those of its subtree.
    for (int c = 0; c < Columns; ++c) {
      unsigned level = 0;
      for (unsigned n = j; n & 1; n >>= 1, ++level) acc[c] = _mm512_add_ps(pending[level][c], acc[c]);
      if (j < 7) pending[level][c] = acc[c];
      else _mm512_mask_storeu_ps(x[c].out + r, rows, acc[c]);
    }
  }
}

template <class Format> void matmulPanels(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t blocks = x.length / 32, words = correctionWords<Format>(blocks);
  const size_t panelBytes = (blocks + 7) / 8 * 8 * sizeof(PanelBlock);
  std::byte* memory = threadScratch(panelBytes + x.rows * (words * sizeof(int32_t) + blocks * sizeof(float)));
  auto* panel = reinterpret_cast<PanelBlock*>(memory);
  auto* offsets = reinterpret_cast<int32_t*>(memory + panelBytes);
  auto* sums = reinterpret_cast<float*>(offsets + x.rows * words);
  for (size_t m = 0; m < x.rows; ++m) prepare<Format>(column(x, m, out, outStride), blocks, {offsets + m * words, sums + m * blocks});

  for (size_t r = 0; r < rowCount; r += PanelRows) {
    const size_t rows = rowCount - r < PanelRows ? rowCount - r : PanelRows;
    pack<Format>(weights + r * rowBytes, rowBytes, rows, blocks, panel);
    const __mmask16 mask = firstLanes(rows);
    size_t m = 0;
    const auto multiply = [&]<int Columns>() {
      Column columns[Columns];
      Corrections corrections[Columns];
      for (int c = 0; c < Columns; ++c) {
        columns[c] = column(x, m + c, out, outStride);
        corrections[c] = {offsets + (m + c) * words, sums + (m + c) * blocks};
      }
      multiplyPanel<Format, Columns>(panel, blocks, columns, corrections, r, mask);
      m += Columns;
    };
    while (m + 8 <= x.rows) multiply.template operator()<8>();
    if (m + 4 <= x.rows) multiply.template operator()<4>();
    if (m + 2 <= x.rows) multiply.template operator()<2>();
    if (m < x.rows) multiply.template operator()<1>();
  }
}

template <class Format> void matmul(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  if (x.rows >= PanelThreshold) return matmulPanels<Format>(weights, rowBytes, rowCount, x, out, outStride);
  size_t m = 0;
  if (m + 4 <= x.rows) matmulPairs<Format, 4>(weights, rowBytes, rowCount, x, m, out, outStride), m += 4;
  switch (x.rows - m) {
  case 3: return matmulPairs<Format, 3>(weights, rowBytes, rowCount, x, m, out, outStride);
  case 2: return matmulPairs<Format, 2>(weights, rowBytes, rowCount, x, m, out, outStride);
  case 1: return matmulPairs<Format, 1>(weights, rowBytes, rowCount, x, m, out, outStride);
  default: return;
  }
}

} // namespace

void matmulInt8(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(weights);
  switch (type) {
  case Type::Q4_0: return matmul<Q4_0>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q4_1: return matmul<Q4_1>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q5_0: return matmul<Q5_0>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q5_1: return matmul<Q5_1>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q8_0: return matmul<Q8_0>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q4_K: return matmul<Q4_K>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q5_K: return matmul<Q5_K>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q6_K: return matmul<Q6_K>(bytes, rowBytes, rowCount, x, out, outStride);
  default: return;
  }
}

} // namespace mashbox::cpu::avx512

#endif
