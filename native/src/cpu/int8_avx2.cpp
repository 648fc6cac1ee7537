#if defined(__x86_64__)

#include "cpu/int8_avx2.hpp"

#include "cpu/int8_blocks_avx2.hpp"

namespace mashbox::cpu::avx2 {
namespace {

constexpr size_t PanelRows = 8;

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

/// Adds up eight registers of partial sums, the halves of blocks apart: one lane per block.
template <bool Factors> void reduce(const __m256i p[8], const Group& group, __m256i half[2]) {
  __m256i quarter[2];
  for (int i = 0; i < 2; ++i) {
    const __m256i* x = p + 4 * i;
    const __m256i left = _mm256_add_epi32(_mm256_unpacklo_epi32(x[0], x[1]), _mm256_unpackhi_epi32(x[0], x[1]));
    const __m256i right = _mm256_add_epi32(_mm256_unpacklo_epi32(x[2], x[3]), _mm256_unpackhi_epi32(x[2], x[3]));
    quarter[i] = _mm256_add_epi32(_mm256_unpacklo_epi64(left, right), _mm256_unpackhi_epi64(left, right));
    if constexpr (Factors) quarter[i] = _mm256_mullo_epi32(quarter[i], group.factors[i]);
  }
  half[0] = _mm256_permute2x128_si256(quarter[0], quarter[1], 0x20);
  half[1] = _mm256_permute2x128_si256(quarter[0], quarter[1], 0x31);
}

/// The first and second words of every lane as 32-bit numbers.
__m256i firstWords(__m256i pairs) { return _mm256_srai_epi32(_mm256_slli_epi32(pairs, 16), 16); }
__m256i secondWords(__m256i pairs) { return _mm256_srai_epi32(pairs, 16); }

__m256i times(__m256i x, int factor) { return _mm256_mullo_epi32(x, _mm256_set1_epi32(factor)); }

/// acc + scale · a · sum
__m256 addScaled(__m256 acc, __m256 scale, __m256 a, __m256i sum) { return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(scale, a), _mm256_cvtepi32_ps(sum))); }
/// acc + min · (a · sum)
__m256 addMin(__m256 acc, __m256 min, __m256 a, __m256i sum) { return _mm256_add_ps(acc, _mm256_mul_ps(min, _mm256_mul_ps(a, _mm256_cvtepi32_ps(sum)))); }

/// One group of `count` blocks of a weight row against one activation row.
template <class Format> __m256 step(__m256 acc, const Group& group, const int8_t* q, __m256 a, __m256i sums, unsigned count) {
  __m256i p[8];
  for (unsigned b = 0; b < 8; ++b) {
    p[b] = _mm256_setzero_si256();
    if (b < count) p[b] = Format::isSigned ? dotSigned(group.code[b], load256(q + 32 * b)) : dotUnsigned(group.code[b], load256(q + 32 * b));
  }
  __m256i half[2];
  reduce<Format::hasFactors>(p, group, half);
  if constexpr (Format::hasHalves) {
    acc = addScaled(acc, group.scale, a, _mm256_sub_epi32(half[0], times(firstWords(sums), Format::offset)));
    return addScaled(acc, group.second, a, _mm256_sub_epi32(half[1], times(secondWords(sums), Format::offset)));
  }
  __m256i sum = _mm256_add_epi32(half[0], half[1]);
  if constexpr (Format::hasFactors && Format::offset != 0)
    sum = _mm256_sub_epi32(sum, _mm256_slli_epi32(_mm256_madd_epi16(sums, group.factors16), __builtin_ctz(Format::offset)));
  else if constexpr (Format::offset != 0)
    sum = _mm256_sub_epi32(sum, _mm256_madd_epi16(sums, _mm256_set1_epi16(Format::offset)));
  acc = addScaled(acc, group.scale, a, sum);
  if constexpr (Format::hasMin) acc = addMin(acc, group.min, a, _mm256_madd_epi16(sums, Format::hasMinFactors ? group.minFactors16 : _mm256_set1_epi16(1)));
  return acc;
}

/// One weight row against `Columns` activation rows; `ahead` is the prefetch distance.
template <class Format, int Columns> void dotRow(const uint8_t* row, size_t blocks, const Column* x, size_t r, size_t ahead) {
  __m256 acc[Columns];
  for (__m256& a : acc) a = _mm256_setzero_ps();
  Group group;
  size_t b = 0;
  for (; b + 8 <= blocks; b += 8, row += Format::groupBytes) {
    for (size_t line = 0; line < Format::groupBytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(row + ahead + line), _MM_HINT_T0);
    loadBlocks<Format>(row, 8, group);
    for (int c = 0; c < Columns; ++c)
      acc[c] = step<Format>(acc[c], group, x[c].q + 32 * b, _mm256_loadu_ps(x[c].scale + b), load256(x[c].sum16 + 2 * b), 8);
  }
  if (const unsigned rest = unsigned(blocks - b)) {
    loadBlocks<Format>(row, rest, group);
    for (int c = 0; c < Columns; ++c) {
      alignas(32) float scale[8] = {};
      alignas(32) int16_t sums[16] = {};
      std::memcpy(scale, x[c].scale + b, rest * sizeof *scale);
      std::memcpy(sums, x[c].sum16 + 2 * b, 2 * rest * sizeof *sums);
      acc[c] = step<Format>(acc[c], group, x[c].q + 32 * b, _mm256_load_ps(scale), load256(sums), rest);
    }
  }
  for (int c = 0; c < Columns; ++c) x[c].out[r] = sumLanes(acc[c]);
}

template <class Format, int Columns>
void matmulRowwise(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  Column columns[Columns];
  for (int c = 0; c < Columns; ++c) columns[c] = column(x, size_t(c), out, outStride);
  // Two streams, one through each half of the rows, keep more cache lines on their way than one.
  const size_t half = (rowCount + 1) / 2;
  for (size_t i = 0; i < rowCount; ++i) {
    const size_t r = i / 2 + i % 2 * half;
    dotRow<Format, Columns>(weights + r * rowBytes, x.length / 32, columns, r, 2048);
  }
}

/// Eight weight rows of one 32-value block, lanes = rows; the matrix kernel's diet.
struct PanelBlock {
  __m256i code[8]; ///< four consecutive k per lane
  __m256 scale, min, second;
  __m256i factors16, minFactors16; ///< of both halves of the block
};

/// Panel blocks are stored in the order in which the lanes of tiers.hpp are added up.
constexpr unsigned LaneOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};

/// Lays out rows [0, rows) of `weights`; the missing ones of eight repeat the last. `panel` has room for each lane's `groups` blocks.
template <class Format> void pack(const uint8_t* weights, size_t rowBytes, size_t rows, size_t blocks, PanelBlock* panel) {
  alignas(32) uint8_t codes[8][PanelRows][32];
  alignas(32) float scales[PanelRows][8], mins[PanelRows][8], seconds[PanelRows][8];
  alignas(32) int32_t factors[PanelRows][8], minFactors[PanelRows][8];
  const size_t groups = (blocks + 7) / 8;
  for (size_t g = 0; g < groups; ++g) {
    const unsigned count = unsigned(blocks - 8 * g < 8 ? blocks - 8 * g : 8);
    for (size_t r = 0; r < PanelRows; ++r) {
      const uint8_t* row = weights + (r < rows ? r : rows - 1) * rowBytes + g * Format::groupBytes;
      // The next panel comes into the second-level cache while this one is multiplied.
      for (size_t line = 0; line < Format::groupBytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(row + PanelRows * rowBytes + line), _MM_HINT_T1);
      Group group;
      loadBlocks<Format>(row, count, group);
      for (unsigned b = 0; b < count; ++b) _mm256_store_si256(reinterpret_cast<__m256i*>(codes[b][r]), group.code[b]);
      _mm256_store_ps(scales[r], group.scale);
      if constexpr (Format::hasMin) _mm256_store_ps(mins[r], group.min);
      if constexpr (Format::hasHalves) _mm256_store_ps(seconds[r], group.second);
      if constexpr (Format::hasFactors) _mm256_store_si256(reinterpret_cast<__m256i*>(factors[r]), group.factors16);
      if constexpr (Format::hasMinFactors) _mm256_store_si256(reinterpret_cast<__m256i*>(minFactors[r]), group.minFactors16);
    }
    __m256i scale[8], min[8], second[8], factor[8], minFactor[8];
    transpose8x8(scales, scale);
    if constexpr (Format::hasMin) transpose8x8(mins, min);
    if constexpr (Format::hasHalves) transpose8x8(seconds, second);
    if constexpr (Format::hasFactors) transpose8x8(factors, factor);
    if constexpr (Format::hasMinFactors) transpose8x8(minFactors, minFactor);
    for (unsigned j = 0; j < 8; ++j) {
      const unsigned b = LaneOrder[j];
      if (b >= count) continue;
      PanelBlock& block = panel[j * groups + g];
      transpose8x8(codes[b], block.code);
      block.scale = _mm256_castsi256_ps(scale[b]);
      if constexpr (Format::hasMin) block.min = _mm256_castsi256_ps(min[b]);
      if constexpr (Format::hasHalves) block.second = _mm256_castsi256_ps(second[b]);
      if constexpr (Format::hasFactors) block.factors16 = factor[b];
      if constexpr (Format::hasMinFactors) block.minFactors16 = minFactor[b];
    }
  }
}

inline __m256i broadcastWord(const int8_t* at) { return _mm256_set1_epi32(int(loadU32(at))); }

/// Adds the products of code words [first, last) to `sum`: as many 16-bit sums as cannot overflow, then widened.
template <class Format, int Columns> void multiplyWords(const __m256i* code, int first, int last, const Column* x, size_t b, __m256i sum[Columns]) {
  constexpr int Fit = Format::isSigned ? 1 : 32767 / (2 * 127 * Format::maxCode) < 4 ? 32767 / (2 * 127 * Format::maxCode) : 4;
  static_assert(Fit == 1 || Fit == 2 || Fit == 4);
  for (int k = first; k < last; k += Fit)
    for (int c = 0; c < Columns; ++c) {
      __m256i pairs = _mm256_setzero_si256();
      for (int i = k; i < k + Fit; ++i) {
        const __m256i q = broadcastWord(x[c].q + 32 * b + 4 * i);
        const __m256i product = Format::isSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(code[i]), _mm256_sign_epi8(q, code[i])) : _mm256_maddubs_epi16(code[i], q);
        pairs = _mm256_add_epi16(pairs, product);
      }
      sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
}

/// Eight weight rows against `Columns` activation rows.
template <class Format, int Columns> void multiplyPanel(const PanelBlock* panel, size_t blocks, const Column* x, size_t r, __m256i rows) {
  const size_t groups = (blocks + 7) / 8;
  __m256 pending[3][Columns];
  for (unsigned j = 0; j < 8; ++j) {
    __m256 acc[Columns];
    for (__m256& a : acc) a = _mm256_setzero_ps();
    const PanelBlock* block = panel + j * groups;
    for (size_t b = LaneOrder[j]; b < blocks; b += 8, ++block) {
      __m256i sum[Columns];
      const auto multiplyHalf = [&](int h, __m256i half[Columns]) {
        for (int c = 0; c < Columns; ++c) half[c] = _mm256_set1_epi32(-Format::offset * x[c].sum16[2 * b + h]);
        multiplyWords<Format, Columns>(block->code, 4 * h, 4 * h + 4, x, b, half);
      };
      const auto scaled = [&](__m256 scale) {
        for (int c = 0; c < Columns; ++c) acc[c] = addScaled(acc[c], scale, _mm256_set1_ps(x[c].scale[b]), sum[c]);
      };
      if constexpr (Format::hasHalves) {
        multiplyHalf(0, sum);
        scaled(block->scale);
        multiplyHalf(1, sum);
        scaled(block->second);
        continue;
      }
      if constexpr (Format::hasFactors) {
        __m256i half[2][Columns];
        for (int h = 0; h < 2; ++h) multiplyHalf(h, half[h]);
        const __m256i first = firstWords(block->factors16), second = secondWords(block->factors16);
        for (int c = 0; c < Columns; ++c) sum[c] = _mm256_add_epi32(_mm256_mullo_epi32(half[0][c], first), _mm256_mullo_epi32(half[1][c], second));
      } else {
        for (int c = 0; c < Columns; ++c) sum[c] = _mm256_set1_epi32(-Format::offset * (x[c].sum16[2 * b] + x[c].sum16[2 * b + 1]));
        multiplyWords<Format, Columns>(block->code, 0, 8, x, b, sum);
      }
      scaled(block->scale);
      if constexpr (Format::hasMin) {
        const __m256i factors = Format::hasMinFactors ? block->minFactors16 : _mm256_set1_epi16(1);
        for (int c = 0; c < Columns; ++c)
          acc[c] = addMin(acc[c], block->min, _mm256_set1_ps(x[c].scale[b]), _mm256_madd_epi16(factors, _mm256_set1_epi32(int(loadU32(x[c].sum16 + 2 * b)))));
      }
    }
    // Each finished lane joins those of its subtree.
    for (int c = 0; c < Columns; ++c) {
      unsigned level = 0;
      for (unsigned n = j; n & 1; n >>= 1, ++level) acc[c] = _mm256_add_ps(pending[level][c], acc[c]);
      if (j < 7) pending[level][c] = acc[c];
      else _mm256_maskstore_ps(x[c].out + r, rows, acc[c]);
    }
  }
}

template <class Format> void matmulPanels(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t blocks = x.length / 32;
  auto* panel = reinterpret_cast<PanelBlock*>(threadScratch((blocks + 7) / 8 * 8 * sizeof(PanelBlock)));
  for (size_t r = 0; r < rowCount; r += PanelRows) {
    const size_t rows = rowCount - r < PanelRows ? rowCount - r : PanelRows;
    pack<Format>(weights + r * rowBytes, rowBytes, rows, blocks, panel);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(int(rows)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    size_t m = 0;
    const auto multiply = [&]<int Columns>() {
      Column columns[Columns];
      for (int c = 0; c < Columns; ++c) columns[c] = column(x, m + c, out, outStride);
      multiplyPanel<Format, Columns>(panel, blocks, columns, r, mask);
      m += Columns;
    };
    while (m + 4 <= x.rows) multiply.template operator()<4>();
    if (m + 2 <= x.rows) multiply.template operator()<2>();
    if (m < x.rows) multiply.template operator()<1>();
  }
}

/// Laying eight weight rows out for the matrix kernel pays from five activation rows on.
template <class Format> void matmul(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  switch (x.rows) {
  case 0: return;
  case 1: return matmulRowwise<Format, 1>(weights, rowBytes, rowCount, x, out, outStride);
  case 2: return matmulRowwise<Format, 2>(weights, rowBytes, rowCount, x, out, outStride);
  case 3: return matmulRowwise<Format, 3>(weights, rowBytes, rowCount, x, out, outStride);
  case 4: return matmulRowwise<Format, 4>(weights, rowBytes, rowCount, x, out, outStride);
  default: return matmulPanels<Format>(weights, rowBytes, rowCount, x, out, outStride);
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
  case Type::Q2_K: return matmul<Q2_K>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q3_K: return matmul<Q3_K>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q4_K: return matmul<Q4_K>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q5_K: return matmul<Q5_K>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::Q6_K: return matmul<Q6_K>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::IQ4_NL: return matmul<IQ4_NL>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::IQ4_XS: return matmul<IQ4_XS>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::MXFP4: return matmul<MXFP4>(bytes, rowBytes, rowCount, x, out, outStride);
  case Type::NVFP4: return matmul<NVFP4>(bytes, rowBytes, rowCount, x, out, outStride);
  default: return;
  }
}

} // namespace mashbox::cpu::avx2

#endif
