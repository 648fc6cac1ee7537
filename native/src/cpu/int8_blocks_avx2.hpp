#pragma once

#include "cpu/simd_avx2.hpp"
#include "quant/codebook.hpp"

/// Taking a weight row apart, eight 32-value blocks at a time: lane = block.
namespace mashbox::cpu::avx2 {
namespace {

struct Group {
  __m256i code[8]; ///< 32 codes of a block, unsigned unless the format is `isSigned`
  __m256 scale, min; ///< per block; `min` only where the format has one
  __m256 second;     ///< scales of the second halves, where those have their own; `scale` is that of the first halves then
  __m256i factors[2];   ///< of the half blocks; blocks 0–3, then 4–7: four first halves, then four second halves
  __m256i factors16;    ///< the same as 16-bit words in order
  __m256i minFactors16; ///< of the half blocks' minimums
};

/// What a format's blocks have besides codes and scales, unless it says otherwise.
struct Plain {
  static constexpr bool isSigned = false; ///< of the codes
  static constexpr bool hasMin = false;
  static constexpr bool hasFactors = false, hasMinFactors = false; ///< of the halves of a block, for its scale and for its minimum
  static constexpr bool hasHalves = false;                         ///< the halves of a block have scales of their own
};

/// Formats of 32-value blocks. A group may be short (`count` blocks, the rest is zero).
template <size_t Bytes, bool Min, int CodeOffset, int MaxCode> struct Legacy : Plain {
  static constexpr bool hasMin = Min;
  static constexpr int offset = CodeOffset;   ///< what the codes are too large by
  static constexpr int maxCode = MaxCode;
  static constexpr size_t groupBytes = 8 * Bytes;

  /// The scales (and minimums behind them) of blocks at stride `Bytes`.
  static void loadScales(const uint8_t* block, unsigned count, Group& group) {
    alignas(16) uint16_t scale[8] = {}, min[8] = {};
    for (unsigned b = 0; b < count; ++b, block += Bytes) {
      std::memcpy(&scale[b], block, 2);
      if constexpr (Min) std::memcpy(&min[b], block + 2, 2);
    }
    group.scale = _mm256_cvtph_ps(load128(scale));
    if constexpr (Min) group.min = _mm256_cvtph_ps(load128(min));
  }
};

inline __m256i nibbles(const uint8_t* at) {
  const __m128i both = load128(at);
  return _mm256_and_si256(join128(both, _mm_srli_epi16(both, 4)), _mm256_set1_epi8(15));
}

/// Sets bit 4 of code i where bit i of the word is set.
inline __m256i withFifth(__m256i codes, const uint8_t* at) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x(int64_t(0x8040201008040201));
  const __m256i word = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(int(loadU32(at))), spread), bit);
  return _mm256_or_si256(codes, _mm256_and_si256(_mm256_cmpeq_epi8(word, bit), _mm256_set1_epi8(16)));
}

template <class Format> void loadBlocks(const uint8_t* row, unsigned count, Group& group) {
  Format::loadScales(row, count, group);
  for (unsigned b = 0; b < count; ++b, row += Format::groupBytes / 8) group.code[b] = Format::codes(row);
}

struct Q4_0 : Legacy<18, false, 8, 15> {
  static __m256i codes(const uint8_t* at) { return nibbles(at + 2); }
};
struct Q4_1 : Legacy<20, true, 0, 15> {
  static __m256i codes(const uint8_t* at) { return nibbles(at + 4); }
};
struct Q5_0 : Legacy<22, false, 16, 31> {
  static __m256i codes(const uint8_t* at) { return withFifth(nibbles(at + 6), at + 2); }
};
struct Q5_1 : Legacy<24, true, 0, 31> {
  static __m256i codes(const uint8_t* at) { return withFifth(nibbles(at + 8), at + 4); }
};
struct Q8_0 : Legacy<34, false, 0, 128> {
  static constexpr bool isSigned = true;
  static __m256i codes(const uint8_t* at) { return load256(at + 2); }
};

/// The values of a table that nibbles index.
inline __m256i lookUp(const int8_t (&table)[16], __m256i indices) { return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(table)), indices); }

struct IQ4_NL : Legacy<18, false, 0, 128> {
  static constexpr bool isSigned = true;
  static __m256i codes(const uint8_t* at) { return lookUp(quant::NonlinearValues, nibbles(at + 2)); }
};

struct MXFP4 : Legacy<17, false, 12, 24> {
  static void loadScales(const uint8_t* block, unsigned count, Group& group) {
    alignas(32) int32_t exponents[8] = {};
    for (unsigned b = 0; b < count; ++b, block += 17) exponents[b] = *block;
    const __m256i e = load256(exponents);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    group.scale = _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
  }
  static __m256i codes(const uint8_t* at) { return _mm256_add_epi8(lookUp(quant::DoubledE2M1, nibbles(at + 1)), _mm256_set1_epi8(offset)); }
};

/// Blocks of 64 values with four scales are pairs of blocks of 32 whose halves have their own.
struct NVFP4 : Plain {
  static constexpr bool hasHalves = true;
  static constexpr int offset = 12;
  static constexpr int maxCode = 24;
  static constexpr size_t groupBytes = 4 * 36;

  /// quant::halvedUE4M3 of every lane.
  static __m256 scales(__m256i x) {
    const __m256i seven = _mm256_and_si256(x, _mm256_set1_epi32(0x7f));
    const __m256 normal = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(seven, 20), _mm256_set1_epi32(119 << 23)));
    const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(seven), _mm256_set1_ps(0x1p-10f));
    const __m256 value = _mm256_blendv_ps(normal, subnormal, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(8), seven)));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(x, _mm256_set1_epi32(0x7f))), value);
  }
  static __m256i codes(const uint8_t* at) {
    const __m128i both = load128(at), high = _mm_srli_epi16(both, 4);
    const __m256i halves = join128(_mm_unpacklo_epi64(both, high), _mm_unpackhi_epi64(both, high));
    return _mm256_add_epi8(lookUp(quant::DoubledE2M1, _mm256_and_si256(halves, _mm256_set1_epi8(15))), _mm256_set1_epi8(offset));
  }
};
template <> inline void loadBlocks<NVFP4>(const uint8_t* row, unsigned count, Group& group) {
  alignas(32) int32_t first[8] = {}, second[8] = {};
  for (unsigned b = 0; b < count; ++b) {
    const uint8_t* block = row + 36 * (b / 2);
    first[b] = block[2 * (b % 2)];
    second[b] = block[2 * (b % 2) + 1];
    group.code[b] = NVFP4::codes(block + 4 + 16 * (b % 2));
  }
  group.scale = NVFP4::scales(load256(first));
  group.second = NVFP4::scales(load256(second));
}

/// The eight 6-bit scales and minimums of a Q4_K or Q5_K block.
struct SuperBlock : Plain {
  static constexpr bool hasMin = true;
  static constexpr int offset = 0;

  static void loadScales(const uint8_t* block, Group& group) {
    const uint32_t x = loadU32(block + 4), y = loadU32(block + 8), z = loadU32(block + 12);
    const uint32_t highScales = (z & 0x0f0f0f0f) | (x >> 6 & 0x03030303) << 4;
    const uint32_t highMins = (z >> 4 & 0x0f0f0f0f) | (y >> 6 & 0x03030303) << 4;
    const __m256i scales = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(int64_t((x & 0x3f3f3f3f) | uint64_t(highScales) << 32)));
    const __m256i mins = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(int64_t((y & 0x3f3f3f3f) | uint64_t(highMins) << 32)));
    const __m128 d = _mm_cvtph_ps(_mm_cvtsi32_si128(int(loadU32(block))));
    const __m256 scale = _mm256_broadcastss_ps(d), min = _mm256_broadcastss_ps(_mm_movehdup_ps(d));
    group.scale = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(scales));
    group.min = _mm256_mul_ps(min, _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_setzero_si256(), mins)));
  }
};

struct Q4_K : SuperBlock {
  static constexpr int maxCode = 15;
  static constexpr size_t groupBytes = 144;
};
template <> inline void loadBlocks<Q4_K>(const uint8_t* row, unsigned, Group& group) {
  SuperBlock::loadScales(row, group);
  const __m256i low = _mm256_set1_epi8(15);
  for (int s = 0; s < 8; s += 2) {
    const __m256i both = load256(row + 16 + 16 * s);
    group.code[s] = _mm256_and_si256(both, low);
    group.code[s + 1] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
  }
}

inline __m256i orMasked(__m256i low, __m256i high, __m256i mask) { return _mm256_or_si256(low, _mm256_and_si256(high, mask)); }

struct Q5_K : SuperBlock {
  static constexpr int maxCode = 31;
  static constexpr size_t groupBytes = 176;
};
template <> inline void loadBlocks<Q5_K>(const uint8_t* row, unsigned, Group& group) {
  SuperBlock::loadScales(row, group);
  const __m256i low = _mm256_set1_epi8(15), bit = _mm256_set1_epi8(16);
  const __m256i fifth = load256(row + 16);
  const __m256i shifted[8] = {
      _mm256_slli_epi16(fifth, 4), _mm256_slli_epi16(fifth, 3), _mm256_slli_epi16(fifth, 2), _mm256_slli_epi16(fifth, 1),
      fifth, _mm256_srli_epi16(fifth, 1), _mm256_srli_epi16(fifth, 2), _mm256_srli_epi16(fifth, 3),
  };
  for (int s = 0; s < 8; s += 2) {
    const __m256i both = load256(row + 48 + 16 * s);
    group.code[s] = orMasked(_mm256_and_si256(both, low), shifted[s], bit);
    group.code[s + 1] = orMasked(_mm256_and_si256(_mm256_srli_epi16(both, 4), low), shifted[s + 1], bit);
  }
}

struct IQ4_XS : Plain {
  static constexpr bool isSigned = true;
  static constexpr int offset = 0;
  static constexpr int maxCode = 128;
  static constexpr size_t groupBytes = 136;
};
template <> inline void loadBlocks<IQ4_XS>(const uint8_t* row, unsigned, Group& group) {
  uint16_t d, high;
  std::memcpy(&d, row, 2);
  std::memcpy(&high, row + 2, 2);
  const __m256i lows = _mm256_srlv_epi32(_mm256_set1_epi32(int(loadU32(row + 4))), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
  const __m256i highs = _mm256_srlv_epi32(_mm256_set1_epi32(high), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
  const __m256i scales = _mm256_or_si256(_mm256_and_si256(lows, _mm256_set1_epi32(15)), _mm256_slli_epi32(_mm256_and_si256(highs, _mm256_set1_epi32(3)), 4));
  group.scale = _mm256_mul_ps(_mm256_cvtph_ps(_mm_set1_epi16(short(d))), _mm256_cvtepi32_ps(_mm256_sub_epi32(scales, _mm256_set1_epi32(32))));
  for (int s = 0; s < 8; ++s) group.code[s] = lookUp(quant::NonlinearValues, nibbles(row + 8 + 16 * s));
}

/// Sixteen factors of the half blocks, in order.
inline void setFactors(__m128i factors, Group& group) {
  const __m128i ordered = _mm_shuffle_epi8(factors, _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
  group.factors16 = _mm256_cvtepi8_epi16(factors);
  group.factors[0] = _mm256_cvtepi8_epi32(ordered);
  group.factors[1] = _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(ordered, ordered));
}

/// The half at an address, eight times.
inline __m256 eightHalves(const uint8_t* at) {
  uint16_t d;
  std::memcpy(&d, at, 2);
  return _mm256_cvtph_ps(_mm_set1_epi16(short(d)));
}

struct Q2_K : Plain {
  static constexpr bool hasMin = true, hasFactors = true, hasMinFactors = true;
  static constexpr int offset = 0;
  static constexpr int maxCode = 3;
  static constexpr size_t groupBytes = 84;
};
template <> inline void loadBlocks<Q2_K>(const uint8_t* row, unsigned, Group& group) {
  const __m256i low = _mm256_set1_epi8(3);
  for (int half = 0; half < 2; ++half) {
    const __m256i four = load256(row + 16 + 32 * half);
    __m256i* code = group.code + 4 * half;
    code[0] = _mm256_and_si256(four, low);
    code[1] = _mm256_and_si256(_mm256_srli_epi16(four, 2), low);
    code[2] = _mm256_and_si256(_mm256_srli_epi16(four, 4), low);
    code[3] = _mm256_and_si256(_mm256_srli_epi16(four, 6), low);
  }
  const __m128i both = load128(row), nibble = _mm_set1_epi8(15);
  setFactors(_mm_and_si128(both, nibble), group);
  group.minFactors16 = _mm256_cvtepi8_epi16(_mm_and_si128(_mm_srli_epi16(both, 4), nibble));
  group.scale = eightHalves(row + 80);
  group.min = _mm256_sub_ps(_mm256_setzero_ps(), eightHalves(row + 82));
}

struct Q3_K : Plain {
  static constexpr bool hasFactors = true;
  static constexpr int offset = 4;
  static constexpr int maxCode = 7;
  static constexpr size_t groupBytes = 110;

  /// The factors of the half blocks.
  static __m128i factors(const uint8_t* at) {
    uint64_t low;
    std::memcpy(&low, at, 8);
    const __m128i lows = _mm_and_si128(_mm_set_epi64x(int64_t(low >> 4), int64_t(low)), _mm_set1_epi8(15));
    const __m128i highs = _mm_and_si128(_mm_srlv_epi32(_mm_set1_epi32(int(loadU32(at + 8))), _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
    return _mm_sub_epi8(_mm_or_si128(lows, _mm_slli_epi16(highs, 4)), _mm_set1_epi8(32));
  }
};
template <> inline void loadBlocks<Q3_K>(const uint8_t* row, unsigned, Group& group) {
  const __m256i low = _mm256_set1_epi8(3), third = _mm256_set1_epi8(4), high = load256(row);
  const __m256i shifted[8] = {
      _mm256_slli_epi16(high, 2), _mm256_slli_epi16(high, 1), high, _mm256_srli_epi16(high, 1),
      _mm256_srli_epi16(high, 2), _mm256_srli_epi16(high, 3), _mm256_srli_epi16(high, 4), _mm256_srli_epi16(high, 5),
  };
  for (int half = 0; half < 2; ++half) {
    const __m256i four = load256(row + 32 + 32 * half);
    const __m256i* bits = shifted + 4 * half;
    __m256i* code = group.code + 4 * half;
    code[0] = orMasked(_mm256_and_si256(four, low), bits[0], third);
    code[1] = orMasked(_mm256_and_si256(_mm256_srli_epi16(four, 2), low), bits[1], third);
    code[2] = orMasked(_mm256_and_si256(_mm256_srli_epi16(four, 4), low), bits[2], third);
    code[3] = orMasked(_mm256_and_si256(_mm256_srli_epi16(four, 6), low), bits[3], third);
  }
  setFactors(Q3_K::factors(row + 96), group);
  group.scale = eightHalves(row + 108);
}

struct Q6_K : Plain {
  static constexpr bool hasFactors = true;
  static constexpr int offset = 32;
  static constexpr int maxCode = 63;
  static constexpr size_t groupBytes = 210;
};
template <> inline void loadBlocks<Q6_K>(const uint8_t* row, unsigned, Group& group) {
  const __m256i low = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);
  for (int half = 0; half < 2; ++half) {
    const __m256i x = load256(row + 64 * half), y = load256(row + 64 * half + 32), high = load256(row + 128 + 32 * half);
    __m256i* code = group.code + 4 * half;
    code[0] = orMasked(_mm256_and_si256(x, low), _mm256_slli_epi16(high, 4), top);
    code[1] = orMasked(_mm256_and_si256(y, low), _mm256_slli_epi16(high, 2), top);
    code[2] = orMasked(_mm256_and_si256(_mm256_srli_epi16(x, 4), low), high, top);
    code[3] = orMasked(_mm256_and_si256(_mm256_srli_epi16(y, 4), low), _mm256_srli_epi16(high, 2), top);
  }
  setFactors(load128(row + 192), group);
  group.scale = eightHalves(row + 208);
}

} // namespace
} // namespace mashbox::cpu::avx2
