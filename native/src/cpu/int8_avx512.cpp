#if defined(__x86_64__)

#include "cpu/int8_avx512.hpp"

#include "cpu/int8_blocks_avx512.hpp"

namespace mashbox::cpu::avx512 {
namespace {

constexpr size_t PanelRows = 16;

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

/// Adds up eight registers of two rows' partial sums, the halves of blocks apart: [first row: one lane per block | second row].
template <bool Factors> void reduce(const __m512i p[8], const Group& group, __m512i half[2]) {
  __m512i quarter[2];
  for (int i = 0; i < 2; ++i) {
    const __m512i* x = p + 4 * i;
    const __m512i left = _mm512_add_epi32(_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[0], x[1]));
    const __m512i right = _mm512_add_epi32(_mm512_unpacklo_epi32(x[2], x[3]), _mm512_unpackhi_epi32(x[2], x[3]));
    quarter[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(left, right), _mm512_unpackhi_epi64(left, right));
    if constexpr (Factors) quarter[i] = _mm512_mullo_epi32(quarter[i], group.factors[i]);
  }
  half[0] = _mm512_permutex2var_epi64(quarter[0], _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), quarter[1]);
  half[1] = _mm512_permutex2var_epi64(quarter[0], _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), quarter[1]);
}

/// The first and second words of every lane as 32-bit numbers.
__m512i firstWords(__m512i pairs) { return _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16); }
__m512i secondWords(__m512i pairs) { return _mm512_srai_epi32(pairs, 16); }

__m512i times(__m512i x, int factor) { return _mm512_mullo_epi32(x, _mm512_set1_epi32(factor)); }

/// acc + scale · a · sum
__m512 addScaled(__m512 acc, __m512 scale, __m512 a, __m512i sum) { return _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(scale, a), _mm512_cvtepi32_ps(sum))); }
/// acc + min · (a · sum)
__m512 addMin(__m512 acc, __m512 min, __m512 a, __m512i sum) { return _mm512_add_ps(acc, _mm512_mul_ps(min, _mm512_mul_ps(a, _mm512_cvtepi32_ps(sum)))); }

/// One group of blocks of two rows against one activation row.
template <class Format, bool Full> __m512 step(__m512 acc, const Group& group, const int8_t* q, const float* scale, const int16_t* sum16, unsigned count) {
  __m512i p[8];
  for (unsigned b = 0; b < 8; ++b) {
    p[b] = _mm512_setzero_si512();
    if (Full || b < count) p[b] = _mm512_dpbusd_epi32(p[b], group.code[b], twice256(q + 32 * b));
  }
  __m512i half[2];
  reduce<Format::hasFactors>(p, group, half);
  const __m512i sums = Full ? twice256(sum16) : _mm512_broadcast_i64x4(_mm256_maskz_loadu_epi16(__mmask16((1u << 2 * count) - 1), sum16));
  const __m512 a = _mm512_broadcast_f32x8(Full ? _mm256_loadu_ps(scale) : _mm256_maskz_loadu_ps(__mmask8((1u << count) - 1), scale));
  if constexpr (Format::hasHalves) {
    acc = addScaled(acc, group.scale, a, _mm512_sub_epi32(half[0], times(firstWords(sums), Format::offset)));
    return addScaled(acc, group.second, a, _mm512_sub_epi32(half[1], times(secondWords(sums), Format::offset)));
  }
  __m512i sum = _mm512_add_epi32(half[0], half[1]);
  if constexpr (Format::hasFactors && Format::offset != 0)
    sum = _mm512_sub_epi32(sum, _mm512_slli_epi32(_mm512_madd_epi16(sums, group.factors16), __builtin_ctz(Format::offset)));
  else if constexpr (Format::offset != 0)
    sum = _mm512_sub_epi32(sum, _mm512_madd_epi16(sums, _mm512_set1_epi16(Format::offset)));
  acc = addScaled(acc, group.scale, a, sum);
  if constexpr (Format::hasMin) acc = addMin(acc, group.min, a, _mm512_madd_epi16(sums, Format::hasMinFactors ? group.minFactors16 : _mm512_set1_epi16(1)));
  return acc;
}

/// Weight rows r and r + apart (`second` bytes further on; 0 for none) against `Columns` activation rows; `ahead` is the prefetch distance.
template <class Format, int Columns> void dotPair(const uint8_t* row, ptrdiff_t second, size_t blocks, const Column* x, size_t r, size_t apart, size_t ahead) {
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
    if (second) x[c].out[r + apart] = _mm_cvtss_f32(_mm512_extractf32x4_ps(sum, 2));
  }
}

template <class Format, int Columns>
void matmulPairs(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  Column columns[Columns];
  for (int c = 0; c < Columns; ++c) columns[c] = column(x, size_t(c), out, outStride);
  // Two streams, one through each half of the rows, keep more cache lines on their way than one.
  const size_t half = (rowCount + 1) / 2;
  for (size_t r = 0; r < half; ++r)
    dotPair<Format, Columns>(weights + r * rowBytes, r + half < rowCount ? ptrdiff_t(half * rowBytes) : 0, x.length / 32, columns, r, half, 2048);
}

/// Sixteen weight rows of one 32-value block, lanes = rows; the matrix kernel's diet.
struct PanelBlock {
  __m512i code[8]; ///< four consecutive k per lane
  __m512 scale, min, second;
  __m512i factors16, minFactors16; ///< of both halves of the block
};

/// Panel blocks are stored in the order in which the lanes of tiers.hpp are added up.
constexpr unsigned LaneOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};

/// Lays out rows [0, rows) of `weights`; the missing ones of sixteen repeat the last. `panel` has room for each lane's `groups` blocks.
template <class Format> void pack(const uint8_t* weights, size_t rowBytes, size_t rows, size_t blocks, PanelBlock* panel) {
  alignas(64) uint8_t codes[8][PanelRows][32];
  alignas(64) float scales[PanelRows][8], mins[PanelRows][8], seconds[PanelRows][8];
  alignas(64) int32_t factors[PanelRows][8], minFactors[PanelRows][8];
  const size_t groups = (blocks + 7) / 8;
  for (size_t g = 0; g < groups; ++g) {
    const unsigned count = unsigned(blocks - 8 * g < 8 ? blocks - 8 * g : 8);
    for (size_t r = 0; r < PanelRows; r += 2) {
      const size_t first = r < rows ? r : rows - 1, second = r + 1 < rows ? r + 1 : rows - 1;
      const uint8_t* row = weights + first * rowBytes + g * Format::groupBytes;
      // The next panel comes into the second-level cache while this one is multiplied.
      for (const uint8_t* next : {row + PanelRows * rowBytes, row + (PanelRows + 1) * rowBytes})
        for (size_t line = 0; line < Format::groupBytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(next + line), _MM_HINT_T1);
      Group group;
      loadBlocks<Format>(row, ptrdiff_t((second - first) * rowBytes), count, group);
      for (unsigned b = 0; b < count; ++b) _mm512_store_si512(codes[b][r], group.code[b]);
      _mm512_store_ps(scales[r], group.scale);
      if constexpr (Format::hasMin) _mm512_store_ps(mins[r], group.min);
      if constexpr (Format::hasHalves) _mm512_store_ps(seconds[r], group.second);
      if constexpr (Format::hasFactors) _mm512_store_si512(factors[r], group.factors16);
      if constexpr (Format::hasMinFactors) _mm512_store_si512(minFactors[r], group.minFactors16);
    }
    __m512i scale[8], min[8], second[8], factor[8], minFactor[8];
    transpose16x8(scales, scale);
    if constexpr (Format::hasMin) transpose16x8(mins, min);
    if constexpr (Format::hasHalves) transpose16x8(seconds, second);
    if constexpr (Format::hasFactors) transpose16x8(factors, factor);
    if constexpr (Format::hasMinFactors) transpose16x8(minFactors, minFactor);
    for (unsigned j = 0; j < 8; ++j) {
      const unsigned b = LaneOrder[j];
      if (b >= count) continue;
      PanelBlock& block = panel[j * groups + g];
      transpose16x8(codes[b], block.code);
      block.scale = _mm512_castsi512_ps(scale[b]);
      if constexpr (Format::hasMin) block.min = _mm512_castsi512_ps(min[b]);
      if constexpr (Format::hasHalves) block.second = _mm512_castsi512_ps(second[b]);
      if constexpr (Format::hasFactors) block.factors16 = factor[b];
      if constexpr (Format::hasMinFactors) block.minFactors16 = minFactor[b];
    }
  }
}

/// One 32-value block of sixteen activation rows, as the matrix kernel reads it: lanes = activation rows.
struct ColumnBlock {
  int32_t word[8][16]; ///< four consecutive codes
  float scale[16];
  int32_t correction[2][16]; ///< for the weight codes' offset: per block, or per half block where those count apart
  float sum[16];             ///< scale · sum of the codes, for minimums
  int32_t halfSums[16];      ///< sums of the codes of both halves, a word each, for minimums with factors
};
constexpr size_t TileColumns = 16;
/// Activation rows that are laid out at a time: their blocks should stay in the second-level cache.
constexpr size_t PassColumns = 64;

/// Lays out activation rows [m, m + count) of x, in the panel's order of blocks.
template <class Format> void layOut(const Activations& x, size_t m, size_t count, ColumnBlock* to) {
  const size_t blocks = x.length / 32, groups = (blocks + 7) / 8;
  const __mmask16 present = firstLanes(count);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i stride = _mm512_mullo_epi32(lane, _mm512_set1_epi32(int(blocks)));
  const __m512i zero = _mm512_setzero_si512();
  alignas(64) int8_t rows[16][32] = {};
  for (unsigned j = 0; j < 8; ++j, to += groups)
    for (size_t b = LaneOrder[j], g = 0; b < blocks; b += 8, ++g) {
      ColumnBlock& block = to[g];
      for (size_t c = 0; c < count; ++c)
        _mm256_store_si256(reinterpret_cast<__m256i*>(rows[c]), load256(x.q + (m + c) * x.length + 32 * b));
      __m512i word[8];
      transpose16x8(rows, word);
      for (int k = 0; k < 8; ++k) _mm512_storeu_si512(block.word[k], word[k]);
      const __m512 scale = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), present, stride, x.scale + m * blocks + b, 4);
      const __m512i sums = _mm512_mask_i32gather_epi32(zero, present, stride, x.sum16 + 2 * (m * blocks + b), 4);
      const __m512i total = _mm512_madd_epi16(sums, _mm512_set1_epi16(1));
      _mm512_storeu_ps(block.scale, scale);
      if constexpr (Format::hasFactors || Format::hasHalves) {
        _mm512_storeu_si512(block.correction[0], times(firstWords(sums), -Format::offset));
        _mm512_storeu_si512(block.correction[1], times(secondWords(sums), -Format::offset));
      } else if constexpr (Format::offset != 0) {
        _mm512_storeu_si512(block.correction[0], times(total, -Format::offset));
      }
      if constexpr (Format::hasMinFactors) _mm512_storeu_si512(block.halfSums, sums);
      else if constexpr (Format::hasMin) _mm512_storeu_ps(block.sum, _mm512_mul_ps(scale, _mm512_cvtepi32_ps(total)));
    }
}

/// Words [first, last) of a block against `Columns` activation rows.
template <class Format, int Columns> void multiplyWords(const __m512i* code, int first, int last, const ColumnBlock& x, size_t c0, int half, __m512i sum[Columns]) {
  for (int c = 0; c < Columns; ++c) sum[c] = Format::offset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(x.correction[half][c0 + c]);
  for (int k = first; k < last; ++k)
    for (int c = 0; c < Columns; ++c) sum[c] = _mm512_dpbusd_epi32(sum[c], code[k], _mm512_set1_epi32(x.word[k][c0 + c]));
}

/// Sixteen weight rows against activation rows [c0, c0 + Columns) of a tile.
template <class Format, int Columns>
void multiplyPanel(const PanelBlock* panel, const ColumnBlock* x, size_t c0, size_t blocks, float* out, size_t outStride, __mmask16 rows) {
  const size_t groups = (blocks + 7) / 8;
  __m512 pending[3][Columns];
  for (unsigned j = 0; j < 8; ++j) {
    __m512 acc[Columns];
    for (__m512& a : acc) a = _mm512_setzero_ps();
    const PanelBlock* block = panel + j * groups;
    const ColumnBlock* column = x + j * groups;
    for (size_t b = LaneOrder[j]; b < blocks; b += 8, ++block, ++column) {
      __m512i sum[Columns];
      const auto scaled = [&](__m512 scale) {
        for (int c = 0; c < Columns; ++c) acc[c] = addScaled(acc[c], scale, _mm512_set1_ps(column->scale[c0 + c]), sum[c]);
      };
      if constexpr (Format::hasHalves) {
        multiplyWords<Format, Columns>(block->code, 0, 4, *column, c0, 0, sum);
        scaled(block->scale);
        multiplyWords<Format, Columns>(block->code, 4, 8, *column, c0, 1, sum);
        scaled(block->second);
        continue;
      }
      if constexpr (Format::hasFactors) {
        const __m512i first = firstWords(block->factors16), second = secondWords(block->factors16);
        __m512i half[Columns];
        multiplyWords<Format, Columns>(block->code, 0, 4, *column, c0, 0, half);
        for (int c = 0; c < Columns; ++c) sum[c] = _mm512_mullo_epi32(half[c], first);
        multiplyWords<Format, Columns>(block->code, 4, 8, *column, c0, 1, half);
        for (int c = 0; c < Columns; ++c) sum[c] = _mm512_add_epi32(sum[c], _mm512_mullo_epi32(half[c], second));
      } else {
        multiplyWords<Format, Columns>(block->code, 0, 8, *column, c0, 0, sum);
      }
      scaled(block->scale);
      for (int c = 0; c < Columns; ++c) {
        if constexpr (Format::hasMinFactors)
          acc[c] = addMin(acc[c], block->min, _mm512_set1_ps(column->scale[c0 + c]), _mm512_madd_epi16(block->minFactors16, _mm512_set1_epi32(column->halfSums[c0 + c])));
        else if constexpr (Format::hasMin)
          acc[c] = _mm512_add_ps(acc[c], _mm512_mul_ps(block->min, _mm512_set1_ps(column->sum[c0 + c])));
      }
    }
    // Each finished lane joins those of its subtree.
    for (int c = 0; c < Columns; ++c) {
      unsigned level = 0;
      for (unsigned n = j; n & 1; n >>= 1, ++level) acc[c] = _mm512_add_ps(pending[level][c], acc[c]);
      if (j < 7) pending[level][c] = acc[c];
      else _mm512_mask_storeu_ps(out + c * outStride, rows, acc[c]);
    }
  }
}

template <class Format>
void multiplyTile(const PanelBlock* panel, const ColumnBlock* x, size_t columns, size_t blocks, float* out, size_t outStride, __mmask16 rows) {
  size_t c = 0;
  const auto multiply = [&]<int Columns>() {
    multiplyPanel<Format, Columns>(panel, x, c, blocks, out + c * outStride, outStride, rows);
    c += Columns;
  };
  while (c + 8 <= columns) multiply.template operator()<8>();
  if (c + 4 <= columns) multiply.template operator()<4>();
  if (c + 2 <= columns) multiply.template operator()<2>();
  if (c < columns) multiply.template operator()<1>();
}

template <class Format> void matmulPanels(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t blocks = x.length / 32, padded = (blocks + 7) / 8 * 8;
  const size_t pass = x.rows < PassColumns ? (x.rows + TileColumns - 1) / TileColumns * TileColumns : PassColumns;
  std::byte* memory = threadScratch(padded * (sizeof(PanelBlock) + pass / TileColumns * sizeof(ColumnBlock)));
  auto* panel = reinterpret_cast<PanelBlock*>(memory);
  auto* columns = reinterpret_cast<ColumnBlock*>(panel + padded);
  for (size_t begin = 0; begin < x.rows; begin += pass) {
    const size_t end = begin + pass < x.rows ? begin + pass : x.rows;
    for (size_t m = begin; m < end; m += TileColumns)
      layOut<Format>(x, m, end - m < TileColumns ? end - m : TileColumns, columns + (m - begin) / TileColumns * padded);
    for (size_t r = 0; r < rowCount; r += PanelRows) {
      const size_t rows = rowCount - r < PanelRows ? rowCount - r : PanelRows;
      pack<Format>(weights + r * rowBytes, rowBytes, rows, blocks, panel);
      for (size_t m = begin; m < end; m += TileColumns)
        multiplyTile<Format>(panel, columns + (m - begin) / TileColumns * padded, end - m < TileColumns ? end - m : TileColumns, blocks, out + m * outStride + r,
                             outStride, firstLanes(rows));
    }
  }
}

/// Laying sixteen weight rows out for the matrix kernel pays from five activation rows on.
template <class Format> void matmul(const uint8_t* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  switch (x.rows) {
  case 0: return;
  case 1: return matmulPairs<Format, 1>(weights, rowBytes, rowCount, x, out, outStride);
  case 2: return matmulPairs<Format, 2>(weights, rowBytes, rowCount, x, out, outStride);
  case 3: return matmulPairs<Format, 3>(weights, rowBytes, rowCount, x, out, outStride);
  case 4: return matmulPairs<Format, 4>(weights, rowBytes, rowCount, x, out, outStride);
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

} // namespace mashbox::cpu::avx512

#endif
